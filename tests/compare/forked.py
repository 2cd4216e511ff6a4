"""What forks do in tests, by name: a fork finds the function in its module."""

import contextlib
import os
import sys
import time

import quick_run


def speaks(argv):
    print(os.getpid(), os.environ["SMMD_TEST_SAYS"], "SMMD_TEST_IS_NOT_THERE" in os.environ, *argv)
    os.system("echo from below")  # what a library writes to the descriptor itself
    print("as an error", file=sys.stderr)


def fails(argv):
    raise RuntimeError("the disk is full")


def sleeps(argv):
    print("at work", flush=True)
    time.sleep(60)


def lists_files(argv):
    for handle in range(3, 256):
        with contextlib.suppress(OSError):
            print(os.fstat(handle).st_ino)


def quick(argv):
    sys.argv = ["quick_run", *argv]
    quick_run.main()
