"""Numbers and tokens, as whole runs; the pieces have their tests beside the code they test."""

import pytest
import torch
from tiny_runs import RowsData, module, trainer


@pytest.mark.parametrize("accumulate", [1, 2])
def test_steps_without_any_number_train_and_are_counted(accumulate, tmp_path):
    words = [(f"Is {k} odd?", "Yes." if k % 2 else "No.") for k in range(8)]
    made = module()
    run = trainer(tmp_path, accumulate_grad_batches=accumulate)
    run.fit(made, RowsData(pairs=words))
    assert run.callback_metrics["train/numeric"] == 0
    assert run.callback_metrics["train/numeric_share"] == 0
    assert run.callback_metrics["train/steps_without_numbers"] == 4 / accumulate
    assert all(bool(torch.isfinite(value).all()) for value in run.callback_metrics.values())
    assert all(bool(torch.isfinite(value).all()) for value in made.state_dict().values())


def test_a_batch_of_fillers_alone_moves_nothing_and_is_finite(tmp_path):
    """Every label is -100 where a batch only fills up a process."""
    made = module()
    made.configure_model()
    batch = RowsData().collator([RowsData().example("train", key) for key in _keys(2)], [False, False])
    loss = made.objective(made.backbone, batch.inputs, batch.labels).loss
    loss.backward()
    assert float(loss) == 0
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None, name
        assert not parameter.grad.any(), name


def _keys(count):
    from smmd_lightning.types import SampleKey

    return [SampleKey(0, index) for index in range(count)]
