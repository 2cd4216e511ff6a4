"""Two processes, one with text alone and one with images: nobody waits, and gradients are those of one process."""

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from tiny_chats import Row, cross_entropies, encode, make, two_rows

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(180)]
CHATS = [[Row("What time is it?")], two_rows()[:1]]
NAMES = ("qwen3-vl", "llava")


def loss_of(model, rank, name):
    inputs, labels = encode(name, CHATS[rank])
    return model(inputs, labels, cross_entropies)[0].mean()


def under_ddp(rank, name, expected):
    model = make(name)
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    for _ in range(2):  # the second step is where DDP notices parameters that were left out
        parallel.zero_grad()
        loss_of(parallel, rank, name).backward()
    found = {key: p.grad for key, p in model.named_parameters() if p.grad is not None}
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def under_fsdp(rank, name, expected):
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    model = make(name, freeze_vision=True)  # frozen blocks are gathered all the same
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    register_fsdp_forward_method(model, "generate")
    loss_of(model, rank, name).backward()
    found = {key: p.grad.full_tensor() for key, p in model.named_parameters() if p.grad is not None}
    assert {key for key in expected if "language_model" in key} <= set(found)
    torch.testing.assert_close(found, {key: expected[key] for key in found}, rtol=1e-4, atol=1e-6)
    alone = make(name)
    prompt = encode(name, CHATS[rank], side="left", answers=False)
    # Ranks that need different numbers of tokens: one stops at once, the other goes on.
    first = alone.generate(prompt, max_new_tokens=1)
    options = {"eos_token_id": first[0].tolist()} if rank == 0 else {}
    tokens = model.generate(prompt, max_new_tokens=6, **options)
    assert torch.equal(tokens, alone.generate(prompt, max_new_tokens=6, **options))


def work(rank, port, expected):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    for name in NAMES:
        under_ddp(rank, name, expected[name])
        under_fsdp(rank, name, expected[name])
    dist.destroy_process_group()


def test_one_rank_with_text_and_one_with_images():
    expected = {}
    for name in NAMES:
        model = make(name)
        (sum(loss_of(model, rank, name) for rank in range(2)) / 2).backward()
        expected[name] = {key: p.grad for key, p in model.named_parameters() if p.grad is not None}
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(work, (port, expected), nprocs=2)
