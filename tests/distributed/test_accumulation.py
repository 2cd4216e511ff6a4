"""One process that accumulates; two that do are in `scenario_training.py`."""

import pytest
from scenario_training import LOSSES, of_one_batch
from sums import Gradients, SumsData, assert_near, module, trainer


@pytest.mark.parametrize("loss", LOSSES)
def test_four_micro_batches_give_the_gradient_of_one(loss, tmp_path):
    expected = of_one_batch(module(*LOSSES[loss]), SumsData(batch_size=16))
    seen = Gradients()
    engine = trainer(devices=1, accumulate_grad_batches=4, callbacks=[seen], default_root_dir=tmp_path)
    engine.fit(module(*LOSSES[loss]), SumsData(batch_size=4))
    assert len(seen.steps) == 1
    assert_near(seen.steps[0], expected)
