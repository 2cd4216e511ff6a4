"""What each of two processes does: one has text alone, the other an image; `python two_ranks.py GRADIENTS`."""

import sys

import torch
import torch.distributed as dist
from tiny_chats import Row, cross_entropies, encode, gradients, make, two_rows

from smmd_lightning.backbones import LoRA

CHATS = [[Row("What time is it?")], two_rows()[:1]]
SETTINGS = {"qwen3-vl": {}, "llava": {"adapter": LoRA(rank=2), "gradient_checkpointing": True}}


def model_of(name):
    torch.manual_seed(0)
    return make(name, **SETTINGS[name])


def loss_of(model, rank, name):
    inputs, labels = encode(name, CHATS[rank])
    return model(inputs, labels, cross_entropies)[0].mean()


def under_ddp(rank, name, expected):
    model = model_of(name)
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    for _ in range(2):  # the second step is where DDP notices parameters that were left out
        parallel.zero_grad()
        loss_of(parallel, rank, name).backward()
    torch.testing.assert_close(gradients(model), expected, rtol=1e-4, atol=1e-6)


def under_fsdp(rank, name, expected):
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    model = model_of(name)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    register_fsdp_forward_method(model, "generate")
    loss_of(model, rank, name).backward()
    found = {key: gradient.full_tensor() for key, gradient in gradients(model).items()}
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)

    alone = model_of(name)
    prompt = encode(name, CHATS[rank], side="left", answers=False)
    first = alone.generate(prompt, max_new_tokens=1)
    options = {"eos_token_id": first[0].tolist()} if rank == 0 else {}  # rank 0 is done at once, rank 1 goes on
    tokens = model.generate(prompt, max_new_tokens=6, **options)[:, : 1 if rank == 0 else 6]
    assert torch.equal(tokens, alone.generate(prompt, max_new_tokens=6, **options))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    expected = torch.load(sys.argv[1])
    for name in SETTINGS:
        under_ddp(dist.get_rank(), name, expected[name])
        under_fsdp(dist.get_rank(), name, expected[name])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
