"""`python -m smmd_lightning …`, the same as the command `smmd`."""

import sys

from smmd_lightning.commands.smmd import main

if __name__ == "__main__":
    sys.exit(main())
