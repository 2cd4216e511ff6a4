import pytest
import torch
from torch import nn

from smmd_lightning.checkpoints.names import compare_names, compare_shapes, trained_names


def test_trained_names_are_those_that_a_plain_model_has():
    model = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.ModuleDict({"_fsdp_wrapped_module": nn.Linear(1, 1)})})
    model["a"].bias.requires_grad_(False)
    assert trained_names(model) == {"a.weight", "b.weight", "b.bias"}


def test_what_is_missing_and_what_is_unknown_are_both_told():
    with pytest.raises(RuntimeError, match=r"missing in the checkpoint \(1\): \['b'\]\n.*unknown .*\(1\): \['c'\]"):
        compare_names(found={"a", "c"}, own={"a", "b"})
    compare_names(found={"a"}, own={"a", "b"}, optional={"b"})
    with pytest.raises(RuntimeError, match="'a'"):
        compare_names(found={"b"}, own={"a", "b"}, optional={"b"})


def test_another_shape_is_refused_before_anything_is_loaded():
    own = {"a": torch.zeros(2, 3), "b": torch.zeros(4)}
    with pytest.raises(RuntimeError, match=r"1 weights .*\n  b: \(5,\) in the .*, \(4,\) in the model"):
        compare_shapes({"a": torch.zeros(2, 3), "b": torch.zeros(5)}, own)
