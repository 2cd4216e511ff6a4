"""Entry point: `python train.py fit|validate|test|predict --config configs/experiment/NAME.yaml`."""

import datamodules  # noqa: F401  (so that configs can name data modules without their package)
from smmd_lightning.cli import main

if __name__ == "__main__":
    main()
