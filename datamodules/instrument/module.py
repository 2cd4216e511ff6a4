"""Instruments to read: gauges, meters, scales, thermometers, rulers, counters and clocks.

One real example, in YAML::

    data:
      class_path: datamodules.InstrumentDataModule
      init_args:
        batch_size: 16
        instruments:
          class_path: datamodules.DrawnInstruments
          init_args: {families: [pressure_gauge, speedometer], with_unit: false}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datamodules.base import NumericDataModule
from datamodules.instrument.drawn import DrawnInstruments
from datamodules.sources.origins import Samples, Split
from smmd_lightning.types import Source


class InstrumentDataModule(NumericDataModule):
    """Instruments to read, answered as a number with or without its unit.

    Args:
        processor: Folder or hub name of the model's processor; linked to the backbone's path by the command line.
        instruments: Where the instruments come from. None: drawn, all families, varied.
        prompts: Wordings of the question, in which `{instrument}` and `{unit}` stand for the instrument's name and
            unit; one is chosen per sample. None: a plain question.
        **common: See `NumericDataModule`.
    """

    def __init__(
        self,
        processor: str,
        instruments: Samples | None = None,
        prompts: Sequence[str] | None = None,
        **common: Any,
    ) -> None:
        super().__init__(processor, **common)
        self.instruments = instruments or DrawnInstruments()
        self.prompts = prompts

    def source(self, split: Split) -> Source:
        """Returns the samples of a split."""
        return self.instruments.open(split, seed=self.seed, prompts=self.prompts)
