"""Two processes, one with text alone and one with images: nobody waits, and gradients are those of one process."""

import pytest
import torch
import two_ranks
from launching import finish, ranks, start
from tiny_chats import gradients
from two_ranks import SETTINGS, loss_of, model_of


@pytest.mark.distributed
@pytest.mark.timeout(240)
def test_one_rank_with_text_and_one_with_images(tmp_path):
    expected = {}
    for name in SETTINGS:
        model = model_of(name)
        (sum(loss_of(model, rank, name) for rank in range(2)) / 2).backward()
        expected[name] = gradients(model)
        assert set(expected[name]) == set(model.trainable_names())
    torch.save(expected, tmp_path / "expected.pt")
    command, log = [two_ranks.__file__, str(tmp_path / "expected.pt")], tmp_path / "log"
    codes = finish([start(command, log, **variables) for variables in ranks(2)], 200)
    assert codes == [0, 0], log.read_text()[-5000:]
