"""The families of instruments that can be drawn; a new one is a function and a line here."""

from __future__ import annotations

from collections.abc import Sequence

from datamodules.instrument.angles import compass, protractor
from datamodules.instrument.dial import (
    dial_thermometer,
    fuel_gauge,
    panel_meter,
    pressure_gauge,
    speedometer,
    weighing_scale,
)
from datamodules.instrument.digits import rolling_counter, seven_segment
from datamodules.instrument.picture import Family
from datamodules.instrument.straight import (
    battery_gauge,
    bubble_level,
    caliper,
    column_thermometer,
    measuring_cylinder,
    ruler,
)

CLOCK = "clock"
"""The one family with a task of its own: its answers are times of day."""

FAMILIES: dict[str, Family] = {
    family.__name__: family
    for family in (
        pressure_gauge,
        dial_thermometer,
        speedometer,
        panel_meter,
        weighing_scale,
        fuel_gauge,
        column_thermometer,
        measuring_cylinder,
        ruler,
        caliper,
        bubble_level,
        battery_gauge,
        seven_segment,
        rolling_counter,
        compass,
        protractor,
    )
}


def check_families(names: Sequence[str] | None) -> tuple[str, ...]:
    """Returns the families to draw; all of them for None.

    Raises:
        ValueError: There is no such family, or none is named.
    """
    known = (*FAMILIES, CLOCK)
    chosen = known if names is None else tuple(names)
    if not chosen or set(chosen) - set(known):
        raise ValueError(f"families must be some of {', '.join(known)}, got {', '.join(chosen) or 'none'}")
    return chosen
