"""The command line on the small task: `python train_sums.py fit …`."""

import sys

import torch

from smmd_lightning.cli import main

if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1:])
