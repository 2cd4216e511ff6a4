"""Entry point: `python train.py fit|validate|test|predict --config configs/experiment/NAME.yaml`."""

import datamodules
from smmd_lightning.cli import main

if __name__ == "__main__":
    datamodules.load_all()  # so that configs can name data modules without their package
    main()
