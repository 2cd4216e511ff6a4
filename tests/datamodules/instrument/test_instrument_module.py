"""The data module of instruments: pictures and answers through a model's own processor."""

from datamodules import DrawnInstruments, InstrumentDataModule
from smmd_lightning.types import IGNORE_INDEX


def test_batches_hold_the_answers_with_and_without_units():
    for with_unit in (True, False):
        drawn = DrawnInstruments(image_size=64, with_unit=with_unit, train_size=8)
        module = InstrumentDataModule("tiny:llava", drawn, batch_size=4, max_length=512)
        module.setup("fit")
        batch = next(iter(module.train_dataloader()))
        answers = []
        for row in batch.labels:
            ids = row[row != IGNORE_INDEX]
            answers.append(module.collator.tokenizer.decode(ids[:-1]).strip())
        assert answers == [example.answer for example in batch.examples]
        for example in batch.examples:
            if example.meta["task"] == "instrument" and example.meta["unit"]:
                assert example.answer.endswith(example.meta["unit"]) is with_unit
