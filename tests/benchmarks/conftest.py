"""Lets these tests import `benchmarks`, which is no installed package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
