import functools

import pytest
import torch

from smmd_lightning import SMMDLoss
from smmd_lightning.checkpoints.settings import describe
from smmd_lightning.types import VocabularyOptions


def test_plain_values_stay_and_tuples_become_lists():
    assert describe({"a": (1, 2.5), "b": None, "c": [True, "x"]}) == {"a": [1, 2.5], "b": None, "c": [True, "x"]}


def test_objects_classes_and_partials_become_class_path_and_init_args():
    loss = describe(SMMDLoss(term="mmd", bandwidths=(1.0, 2.0)))
    assert loss["class_path"] == "smmd_lightning.SMMDLoss"
    assert loss["init_args"]["term"] == "mmd"
    assert loss["init_args"]["bandwidths"] == [1.0, 2.0]
    assert describe(torch.optim.SGD) == {"class_path": "torch.optim.SGD", "init_args": {}}
    assert describe(functools.partial(torch.optim.SGD, lr=0.5))["init_args"] == {"lr": 0.5}
    assert describe(VocabularyOptions(largest=9))["init_args"]["largest"] == 9


class Base:
    def __init__(self, size, *, shade="grey"):
        self.size, self.shade = size, shade


class Derived(Base):
    def __init__(self, size, *, legs=4, **settings):
        super().__init__(size, **settings)
        self.legs = legs


def test_settings_passed_on_to_the_class_above_are_found():
    assert describe(Derived(3, shade="red"))["init_args"] == {"size": 3, "legs": 4, "shade": "red"}


def test_what_cannot_be_written_is_an_error():
    with pytest.raises(ValueError, match="cannot be written into a checkpoint as plain settings"):
        describe(lambda parameters: None)
