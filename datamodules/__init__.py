"""Data modules: clocks, charts and text math, for any model's own processor. Names load when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "NumericDataModule": "base",
    "Collator": "pipeline.collate",
    "ClockDataModule": "clock",
    "ClockFiles": "clock",
    "ClockHub": "clock",
    "DrawnClocks": "clock",
    "ChartDataModule": "chart",
    "ChartFiles": "chart",
    "ChartHub": "chart",
    "DrawnCharts": "chart",
    "TextMathDataModule": "text_math",
    "DrawnArithmetic": "text_math",
    "DrawnMeasurements": "text_math",
    "DrawnWordProblems": "text_math",
    "MathFiles": "text_math",
    "MathHub": "text_math",
    "InstrumentDataModule": "instrument",
    "DrawnInstruments": "instrument",
    "CaptionDataModule": "captions",
    "DrawnCaptions": "captions",
    "NearMissPairs": "preferences",
    "PublishedDataModule": "published",
    "NumberDataModule": "number",
    "NumberColumns": "number",
    "NumberFiles": "number",
    "MixedDataModule": "mixed",
    "Part": "mixed",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_all() -> None:
    """Imports every class named here, so that the command line knows them without their package."""
    for name in _HOME:
        __getattr__(name)
