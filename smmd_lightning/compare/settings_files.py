"""Settings read from YAML files that name each other, and merged.

One real example: of an experiment's file and `{"trainer": {"max_steps": 50}}`::

    merged(read_settings(Path("configs/experiment/quickstart.yaml")), {"trainer": {"max_steps": 50}})
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

Settings = dict[str, Any]


def read_settings(file: Path) -> Settings:
    """Reads a YAML file with the files that it names (relative to it, ending in .yaml or .yml) in their places.

    Raises:
        ValueError: A file is missing or holds no mapping.
    """
    return {name: _nested(value, file) for name, value in read_mapping(file).items()}


def merged(below: Settings, above: Mapping[str, Any]) -> Settings:
    """Merges mappings; another `class_path` takes the place of the whole mapping below, as its settings differ.

    >>> merged({"a": {"x": 1, "y": 2}, "b": [1]}, {"a": {"y": 3}, "b": [2]})
    {'a': {'x': 1, 'y': 3}, 'b': [2]}
    """
    result = dict(below)
    for name, value in above.items():
        known = result.get(name)
        fits = isinstance(known, dict) and isinstance(value, Mapping) and _same_class(known, value)
        result[name] = merged(known, value) if fits else value  # type: ignore[arg-type]
    return result


def _same_class(below: Settings, above: Mapping[str, Any]) -> bool:
    return "class_path" not in above or above["class_path"] == below.get("class_path")


def _nested(value: Any, file: Path) -> Any:
    if isinstance(value, dict):
        return {name: _nested(inner, file) for name, inner in value.items()}
    if isinstance(value, list):
        return [_nested(inner, file) for inner in value]
    if isinstance(value, str) and value.endswith((".yaml", ".yml")):
        return read_settings(file.parent / value)
    return value


def read_mapping(file: Path) -> Settings:
    """Reads a YAML file as it is.

    Raises:
        ValueError: It is missing or holds no mapping.
    """
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{file} does not exist.") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{file} is no YAML: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{file} must hold a mapping of settings, got {type(found).__name__}.")
    return found
