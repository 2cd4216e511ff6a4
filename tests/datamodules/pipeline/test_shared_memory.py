import pickle
from dataclasses import replace

import pytest
import torch

from datamodules.pipeline.shared_memory import ALIGNMENT, Parcel
from smmd_lightning.types import Batch, NumericExample


def make_batch(**changes):
    inputs = {
        "input_ids": torch.tensor([[1, 2, 3]]),
        "pixel_values": torch.rand(1, 3, 5, 7).transpose(2, 3),
        "flag": torch.tensor([True]),
        "half": torch.rand(3).bfloat16(),
        "none": torch.empty(0, 4),
        "scalar": torch.tensor(2.5, dtype=torch.float64),
    }
    example = NumericExample(id="a", prompt="?", answer="1")
    return replace(
        Batch(inputs=inputs, labels=torch.tensor([[-100, 2, 3]]), examples=[example], counted=[True]), **changes
    )


@pytest.mark.parametrize("labels", [torch.tensor([[-100, 2, 3]]), None])
def test_what_is_unpacked_is_what_was_packed(labels):
    batch = make_batch(labels=labels, skipped=["row 3"], stop_ids=[7])
    unpacked = Parcel.pack(batch).unpack()
    assert list(unpacked.inputs) == list(batch.inputs)
    for name, tensor in batch.inputs.items():
        other = unpacked.inputs[name]
        assert other.dtype == tensor.dtype
        assert torch.equal(other, tensor)
        assert other.is_contiguous()
    assert (unpacked.labels is None) if labels is None else torch.equal(unpacked.labels, labels)
    assert (unpacked.examples, unpacked.counted) == (batch.examples, batch.counted)
    assert (unpacked.skipped, unpacked.stop_ids) == (["row 3"], [7])


def test_a_parcel_holds_one_tensor_of_memory_and_its_views_are_aligned():
    parcel = Parcel.pack(make_batch())
    unpacked = parcel.unpack()
    tensors = [*unpacked.inputs.values(), unpacked.labels]
    assert {tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.numel()} == {parcel.data.data_ptr()}
    assert all(tensor.storage_offset() * tensor.element_size() % ALIGNMENT == 0 for tensor in tensors)
    assert pickle.loads(pickle.dumps(parcel)).unpack().labels.tolist() == [[-100, 2, 3]]
