"""What a data module looks at before weights load."""

from types import SimpleNamespace

import pytest
import torch

from datamodules.base import NumericDataModule
from datamodules.pipeline.first_look import LOOKED_AT
from smmd_lightning.types import BadSample, NumericExample


class Opened(NumericDataModule):
    """Notes what is read; the splits in `missing` have no file, the first sample of each split is broken."""

    def __init__(self, missing=(), answer="2", **common):
        super().__init__("tiny:llama", **common)
        self.missing, self.answer = missing, answer
        self.read = []

    def source(self, split):
        if split in self.missing:
            raise ValueError(f"{split}.jsonl is not there")
        return self

    def __len__(self):
        return 20

    def example(self, split, key):
        self.read.append((split, key.index))
        torch.rand(3)
        if key.index == 0:
            raise BadSample("broken")
        return NumericExample(f"{split}-{key.index}", "1+1?", self.answer if split == "train" else "2" * 40)


@pytest.mark.parametrize(
    ("stage", "splits"), [("fit", ["train", "val"]), ("validate", ["val"]), ("test", ["test"]), ("predict", ["test"])]
)
def test_the_splits_of_a_stage_are_opened_and_one_usable_sample_of_each_is_read(stage, splits):
    data = Opened()
    torch.manual_seed(3)
    before = torch.get_rng_state()
    data.setup(stage)
    assert data.read == [(split, index) for split in splits for index in (0, 1)]
    assert torch.equal(torch.get_rng_state(), before)
    for split in splits:
        with pytest.raises(ValueError, match=f"{split}.jsonl is not there"):
            Opened(missing=[split]).setup(stage)


def test_a_training_without_validation_needs_no_validation_split():
    data = Opened(missing=["val"])
    data.trainer = SimpleNamespace(
        limit_val_batches=0, callbacks=[], overfit_batches=0, reload_dataloaders_every_n_epochs=0
    )
    data.setup("fit")
    assert data.read == [("train", 0), ("train", 1)]


def test_samples_that_are_too_long_stop_a_training_and_are_left_to_the_loader_elsewhere():
    with pytest.raises(ValueError, match=f"None of the first {LOOKED_AT} training samples fits.*max_length=30"):
        Opened(answer="2" * 40, max_length=30).setup("fit")
    data = Opened(max_length=30)
    data.setup("fit")
    assert data.read[2:] == [("val", index) for index in range(LOOKED_AT)]
