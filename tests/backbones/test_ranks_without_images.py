"""Two processes, one with text alone and one with images: nobody waits, and gradients are those of one process."""

import socket

import pytest
import torch.multiprocessing as mp
from tiny_chats import gradients
from two_ranks import SETTINGS, loss_of, model_of, work


@pytest.mark.distributed
@pytest.mark.timeout(240)
def test_one_rank_with_text_and_one_with_images():
    expected = {}
    for name in SETTINGS:
        model = model_of(name)
        (sum(loss_of(model, rank, name) for rank in range(2)) / 2).backward()
        expected[name] = gradients(model)
        assert set(expected[name]) == set(model.trainable_names())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(work, (port, expected), nprocs=2)
