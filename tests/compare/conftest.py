"""Grids whose runs are over in no time."""

import sys
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))  # forks look for what they do by its module's name
QUICK_RUN = Path(__file__).parent / "quick_run.py"


@pytest.fixture(scope="session")
def grid_writer():
    """Writes a grid with the tasks `sums` and `clocks` and four losses; keyword arguments replace its settings."""

    def write(folder, quick=None, **settings):
        (folder / "task.yaml").write_text(yaml.safe_dump({"model": {"size": 1}, "quick": quick or {}}))
        for name in ("good", "bad", "same"):
            (folder / f"{name}.yaml").write_text(yaml.safe_dump({"class_path": name, "init_args": {"width": 2.0}}))
        grid = {
            "tasks": {
                "sums": {"config": "task.yaml", "metrics": ["exact_match", "mean_absolute_error"]},
                "clocks": {"config": "task.yaml", "overrides": {"model": {"size": 2}}},
            },
            "losses": {
                "ce": {"label": "CE"},
                "good": {"config": "good.yaml", "label": "Good | loss"},
                "bad": {"config": "bad.yaml"},
                "same": {"config": "same.yaml"},
            },
            "weights": [0.1, 0.3],
            "tune_seeds": [101],
            "seeds": [1, 2, 3],
            "program": ["{python}", str(QUICK_RUN)],
        }
        file = folder / "grid.yaml"
        file.write_text(yaml.safe_dump({**grid, **settings}, sort_keys=False))
        return file

    return write


@pytest.fixture
def write_grid(grid_writer, tmp_path):
    """The same, into the test's own folder."""
    return lambda **settings: grid_writer(tmp_path, **settings)
