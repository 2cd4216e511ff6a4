"""Reads the folder of a run: predictions, metrics, learning curves, config, facts.

Unusual: the same step logged twice (a run killed and resumed) counts once, the later record wins.

One real example::

    run = read_run("runs/quickstart")
    run.curves["val/ce"]                      # ((500, 0.71), (1000, 0.42), …)
    run.answers[0]["parsed"]                  # "03:05"
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Curve = tuple[tuple[int, float], ...]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """What a run left behind; whatever was not found is empty.

    Attributes:
        folder: Where it lies.
        answers: Rows of the prediction file; `meta` is a dictionary in each.
        metrics: Values of the metrics file by name.
        curves: (step, value) pairs of each logged scalar by tag, in the order of steps.
        seconds: Wall-clock time from the first logged training step to the last, None without any.
        config: Text of the training config, else of another stage's.
        facts: What the start-up summary wrote down: model, versions, hardware, time of each stage.
    """

    folder: Path
    answers: list[dict[str, Any]] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    curves: dict[str, Curve] = field(default_factory=dict)
    seconds: float | None = None
    config: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """The config as plain data; empty where it cannot be read."""
        import yaml

        try:
            found = yaml.safe_load(self.config)
        except yaml.YAMLError:
            return {}
        return found if isinstance(found, dict) else {}

    def setting(self, path: str) -> Any:
        """Returns one value of the config by its dotted path; None where the config has none there.

        A class may stand in a config by its bare name, so any step of the path may meet a text instead of settings.
        """
        found: Any = self.settings
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found


def read_run(folder: str | Path, predictions: str = "predictions.jsonl", metrics: str = "metrics.json") -> Run:
    """Reads a run's folder.

    Args:
        folder: The run's folder.
        predictions: Name of the prediction file in it.
        metrics: Name of the metrics file in it.

    Raises:
        ValueError: The folder does not exist, holds nothing of a run, or a file in it is damaged.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; give the run_dir of a run.")
    curves, seconds = _read_curves(folder)
    configs = [
        file for name in ("config", "config.test", "config.predict") if (file := folder / f"{name}.yaml").exists()
    ]
    run = Run(
        folder=folder,
        answers=_read_answers(folder / predictions),
        metrics=_numbers(_read_json(folder / metrics)),
        curves=curves,
        seconds=seconds,
        config=configs[0].read_text(encoding="utf-8") if configs else "",
        facts=_read_json(folder / "facts.json"),
    )
    if not (run.answers or run.metrics or run.curves):
        raise ValueError(
            f"{folder} holds no run: no {predictions}, no {metrics} and no TensorBoard log. Give the run_dir of a run."
        )
    return run


def _read_answers(file: Path) -> list[dict[str, Any]]:
    rows = []
    if file.exists():
        for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{file}, line {number}: not JSON ({error}).") from error
            if not isinstance(row, dict):
                raise ValueError(f"{file}, line {number}: a row must be an object, got {type(row).__name__}.")
            if not isinstance(row.get("meta"), dict):
                row["meta"] = {}
            rows.append(row)
    return rows


def _read_json(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{file}: not JSON ({error}).") from error
    if not isinstance(found, dict):
        raise ValueError(f"{file}: must be an object, got {type(found).__name__}.")
    return found


def _numbers(values: dict[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if isinstance(value, (int, float))}


def _read_curves(folder: Path) -> tuple[dict[str, Curve], float | None]:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    records: dict[str, dict[int, tuple[float, float]]] = {}
    times: list[float] = []
    for file in sorted(folder.glob("events.out.tfevents.*")):
        try:
            for event in EventFileLoader(str(file)).Load():
                for value in event.summary.value:
                    if value.tag == "hp_metric" or value.metadata.plugin_data.plugin_name != "scalars":
                        continue
                    number = float(value.tensor.float_val[0])
                    known = records.setdefault(value.tag, {})
                    if event.step not in known or known[event.step][0] <= event.wall_time:
                        known[event.step] = (event.wall_time, number)
                    if value.tag.startswith("train/"):
                        times.append(event.wall_time)
        except (
            Exception
        ) as error:  # a run killed while it wrote leaves half a record; TensorBoard has many errors for it
            log.warning("%s: read in part (%s: %s)", file, type(error).__name__, error)
    curves = {tag: tuple((step, pair[1]) for step, pair in sorted(found.items())) for tag, found in records.items()}
    return curves, (max(times) - min(times) if times else None)
