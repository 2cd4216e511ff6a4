"""Readings of instruments: how far off in parts of the scale, inside the tick or not, and the unit.

Shape legend: N answers, C columns of a row.

Unusual: an error is a share of the scale, so a pressure gauge and a thermometer can be averaged; it is at most 1, which
is also what an answer without a number costs. On a scale that closes on itself (a compass) the shorter way round
counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import torch
from torch import Tensor

from smmd_lightning.answers import AnswerRule, answer_text, parse_number
from smmd_lightning.metrics.functional.summaries import mean, median
from smmd_lightning.metrics.score import Judgement, Score

COLUMNS = ("exact_match", "within_tick", "unit_accuracy", "scale_error", "parse_failures")

WITHIN = (0.01, 0.02, 0.05)
"""Shares of the scale for which `within_N_percent_of_scale` is told."""

SYNONYMS: dict[str, tuple[str, ...]] = {
    "°C": ("degrees celsius", "degree celsius", "celsius", "deg c", "degc", "℃", "° c", "c"),
    "°F": ("degrees fahrenheit", "degree fahrenheit", "fahrenheit", "deg f", "degf", "℉", "° f", "f"),
    "°": ("degrees", "degree", "deg"),
    "%": ("percent", "per cent", "pct"),
    "bar": ("bars",),
    "psi": ("pounds per square inch", "lbf/in²", "lb/in²"),
    "kPa": ("kilopascals", "kilopascal"),
    "MPa": ("megapascals", "megapascal"),
    "km/h": ("kph", "kmh", "kilometers per hour", "kilometres per hour"),
    "mph": ("miles per hour", "mi/h"),
    "V": ("volts", "volt"),
    "mV": ("millivolts", "millivolt"),
    "A": ("amperes", "ampere", "amps", "amp"),
    "mA": ("milliamperes", "milliampere", "milliamps", "milliamp"),
    "kg": ("kilograms", "kilogram", "kilos"),
    "g": ("grams", "gram"),
    "mL": ("milliliters", "millilitres", "milliliter", "millilitre", "cc", "cm³"),
    "cm": ("centimeters", "centimetres", "centimeter", "centimetre"),
    "mm": ("millimeters", "millimetres", "millimeter", "millimetre"),
    "in": ("inches", "inch", '"', "″"),
    "kWh": ("kilowatt hours", "kilowatt-hours", "kilowatt hour"),
    "m³": ("cubic meters", "cubic metres", "m3", "m^3", "cubic meter"),
    "km": ("kilometers", "kilometres", "kilometer", "kilometre"),
    "mi": ("miles", "mile"),
    "mm/m": ("millimeters per meter", "millimetres per metre"),
    "mmHg": ("millimeters of mercury", "millimetres of mercury", "mm hg"),
}
"""Other ways to write a unit, in small letters."""


@dataclass(frozen=True)
class InstrumentTruth:
    """What an instrument shows.

    Attributes:
        value: The true value.
        tick: Step between the smallest ticks; an answer within half of it is as close as a person reads.
        span: Length of the scale, above 0.
        unit: The unit; empty for none.
        period: Length of a scale that closes on itself; None for others.
        unit_asked: Whether an answer must name the unit.
    """

    value: Decimal
    tick: Decimal
    span: Decimal
    unit: str = ""
    period: Decimal | None = None
    unit_asked: bool = True

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> InstrumentTruth:
        """Returns the truth that an example's facts describe.

        Args:
            meta: `value`, `tick`, `scale` (first and last value), and where they apply `unit`, `period`, `unit_asked`.

        Raises:
            ValueError: A fact is missing, is not a number, or the scale has no length.
        """
        try:
            low, high = (Decimal(str(end)) for end in meta["scale"])
            period = meta.get("period")
            truth = cls(
                Decimal(str(meta["value"])),
                Decimal(str(meta["tick"])),
                high - low,
                str(meta.get("unit") or ""),
                None if period is None else Decimal(str(period)),
                bool(meta.get("unit_asked", True)),
            )
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise ValueError(
                f"a reading needs `value`, `tick` and `scale` (two numbers) among its facts, got {dict(meta)!r}"
            ) from error
        numbers = (truth.value, truth.tick, truth.span, truth.period or Decimal(1))
        if not all(number.is_finite() for number in numbers) or truth.span <= 0 or truth.tick < 0:
            raise ValueError(f"value, tick and scale must be finite and the scale must rise, got {dict(meta)!r}")
        return truth

    def error(self, value: Decimal) -> Decimal:
        """Returns the distance of a value from the truth, the shorter way round where the scale closes."""
        if self.period is None:
            return abs(value - self.value)
        apart = (value - self.value) % self.period
        apart += self.period if apart < 0 else 0
        return min(apart, self.period - apart)


def unit_of(text: str, unit: str) -> bool:
    """Returns whether a text names a unit behind a number.

    Letters count as written, because mV and MV differ; written-out names and synonyms may be in any case.

    Args:
        text: An answer.
        unit: The unit, as instruments print it.

    >>> unit_of("about 4.3 bar", "bar"), unit_of("20 degrees Celsius", "°C"), unit_of("20 mV", "V")
    (True, True, False)
    """
    return _behind_a_number(unit).search(text) is not None


def without_unit(text: str, unit: str) -> str:
    """Returns a text without the unit behind its numbers, so that "3 m" is not three million.

    >>> without_unit("It reads 2.5 MPa.", "MPa")
    'It reads 2.5.'
    """
    return _behind_a_number(unit).sub("", text)


def _behind_a_number(unit: str) -> re.Pattern[str]:
    names = [re.escape(unit), *(f"(?i:{re.escape(name)})" for name in SYNONYMS.get(unit, ()))]
    return re.compile(rf"(?<=\d)\s{{0,3}}(?:{'|'.join(names)})(?![\w/³²°^])")


def judge_instrument(prediction: str, truth: InstrumentTruth, rule: AnswerRule = "marked") -> Judgement:
    """Judges one answer.

    Args:
        prediction: What the model wrote.
        truth: What the instrument shows.
        rule: Which of several numbers counts, see `smmd_lightning.answers`.

    Returns:
        The score, its error a share of the scale in percent, and a row with the columns `COLUMNS`.
    """
    shown = f"{truth.value:f} {truth.unit}".strip()
    said = answer_text(prediction) if rule == "marked" else prediction
    named = truth.unit and truth.unit_asked
    unit = float(unit_of(said, truth.unit)) if named else float("nan")
    found = parse_number(without_unit(prediction, truth.unit) if truth.unit else prediction, rule)
    if found is None:
        return Judgement(Score(None, shown, None, False), (0.0, 0.0, 0.0 if named else unit, 1.0, 1.0))
    apart = truth.error(found)
    share = min(1.0, float(apart / truth.span))
    exact = found == truth.value
    row = (float(exact), float(apart <= truth.tick / 2), unit, share, 0.0)
    parsed = f"{found:f} {truth.unit}".strip() if unit == 1.0 else f"{found:f}"
    return Judgement(Score(parsed, shown, 100 * share, exact), row)


def summarise_instruments(table_NC: Tensor, within: Sequence[float] = WITHIN) -> dict[str, Tensor]:
    """Returns the metrics of judged answers.

    Args:
        table_NC: (N, C) float, one row per answer with the columns `COLUMNS`.
        within: Shares of the scale.

    Returns:
        `exact_match`, `within_tick` (at most half a tick off), `mean_scale_error` and `median_scale_error` (percent of
        the scale), `within_N_percent_of_scale`, `parse_failures`; where units were asked also `unit_accuracy` and
        `within_tick_and_unit`.
    """
    exact, tick, unit, error, failed = table_NC.unbind(1)
    values = {
        "exact_match": mean(exact),
        "within_tick": mean(tick),
        "mean_scale_error": 100 * mean(error),
        "median_scale_error": 100 * median(error),
    }
    for share in within:
        values[f"within_{100 * share:g}_percent_of_scale"] = mean((error <= share + 1e-7).float())
    values["parse_failures"] = mean(failed)
    asked = ~unit.isnan()
    if asked.any():
        values["unit_accuracy"] = mean(unit[asked])
        values["within_tick_and_unit"] = mean((tick * unit)[asked])
    return values


def instrument_readings(
    predictions: Sequence[str], truths: Sequence[InstrumentTruth], rule: AnswerRule = "marked"
) -> dict[str, Tensor]:
    """Returns the metrics of N answers; the functional twin of `InstrumentMetrics`.

    >>> truth = InstrumentTruth(Decimal("4.3"), tick=Decimal("0.2"), span=Decimal(10), unit="bar")
    >>> values = instrument_readings(["4.4 bar", "The needle is at 5.3 psi"], [truth, truth])
    >>> [round(values[name].item(), 3) for name in ("within_tick", "mean_scale_error", "unit_accuracy")]
    [0.5, 5.5, 0.5]
    """
    rows = [judge_instrument(*pair, rule=rule).row for pair in zip(predictions, truths, strict=True)]
    return summarise_instruments(torch.tensor(rows, dtype=torch.float32).reshape(-1, len(COLUMNS)))
