"""Checkpoints of weights that are spread over processes: one folder with a part a process, or one ordinary file.

Unusual: a folder is written beside its place and renamed when it is whole, as files are (`atomic`); and both
forms may hold the trained weights only. Either can be read by any number of processes. The functions here are called
by all processes together, `consolidate` by one without any process group.

    last.ckpt/meta.pt         everything that is no tensor of model or optimizer, readable with weights_only=True
    last.ckpt/__0_0.distcp    the parts of process 0 (torch.distributed.checkpoint)
    last.ckpt/.metadata       which part holds what; written last
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from smmd_lightning.checkpoints.atomic import new_draft_folder, replace_folder, write_file

META = "meta.pt"
"""File of a sharded checkpoint's folder that holds everything but tensors; Lightning's own name for it."""

STATE = "state_dict"
"""Key of the weights, in folders and files alike."""


def weights(model: nn.Module, *, whole: bool) -> dict[str, Any]:
    """Returns the weights by name.

    Args:
        model: A sharded model, all of its processes calling.
        whole: True gathers them on process 0 (others get nothing); False returns each process's shards.
    """
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    return get_model_state_dict(model, options=StateDictOptions(full_state_dict=whole, cpu_offload=True))


def optimizer_state(model: nn.Module, optimizer: Optimizer, *, whole: bool) -> dict[str, Any]:
    """Returns an optimizer's state.

    Args:
        model: The sharded model whose parameters it steps.
        optimizer: The optimizer.
        whole: True gathers it on process 0 in the form that an ordinary optimizer has, parameters numbered in its
            order; False returns each process's shards by parameter name.
    """
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict

    state = get_optimizer_state_dict(
        model, optimizer, options=StateDictOptions(full_state_dict=whole, cpu_offload=True)
    )
    if not whole or dist.get_rank() != 0:
        return state
    number = {name: place for place, name in enumerate(_in_order(state))}
    return _renamed(state, number)


def load_weights(model: nn.Module, path: Path) -> None:
    """Reads the weights that a checkpoint holds; names that it lacks stay as they are.

    Args:
        model: The sharded model.
        path: A checkpoint's folder, or a file: process 0 reads it and the others get their shards from it.
    """
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict

    if path.is_dir():
        held = saved_names(path)
        state = {STATE: {name: value for name, value in weights(model, whole=False).items() if name in held}}
        _read(state, path)
        set_model_state_dict(model, state[STATE], options=StateDictOptions(strict=False))
    else:
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, strict=False)
        set_model_state_dict(model, read_file(path)[STATE] if dist.get_rank() == 0 else {}, options=options)


def load_optimizer(model: nn.Module, optimizer: Optimizer, path: Path, number: int) -> None:
    """Reads an optimizer's state.

    Args:
        model: The sharded model.
        optimizer: The optimizer that gets the state.
        path: A checkpoint's folder or file.
        number: Which of the checkpoint's optimizers.
    """
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions,
        get_optimizer_state_dict,
        set_optimizer_state_dict,
    )

    if path.is_dir():
        key = f"optimizer_{number}"
        state = {key: get_optimizer_state_dict(model, optimizer)}
        if any(name.startswith(f"{key}.state.") for name in _metadata(path).state_dict_metadata):
            _read(state, path)
        set_optimizer_state_dict(model, optimizer, state[key])
        return
    names = _in_order(get_optimizer_state_dict(model, optimizer))
    saved = read_file(path)["optimizer_states"][number]
    saved = _renamed(saved, dict(zip(_in_order(saved), names, strict=True)))
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_optimizer_state_dict(model, optimizer, saved, options=options)


def write_folder(checkpoint: dict[str, Any], path: Path) -> None:
    """Writes a checkpoint as a folder, whole or not at all.

    Args:
        checkpoint: Lightning's checkpoint, weights and optimizer states as shards.
        path: The folder; an earlier checkpoint of that name is replaced once the new one is whole.
    """
    import torch.distributed.checkpoint as dcp

    rest = dict(checkpoint)
    tensors = {STATE: rest.pop(STATE)}
    tensors |= {f"optimizer_{number}": state for number, state in enumerate(rest.pop("optimizer_states", []))}
    names: list[Any] = [None]
    if dist.get_rank() == 0:
        names = [str(new_draft_folder(path))]
        write_file(Path(names[0]) / META, lambda file: torch.save(rest, file))
    dist.broadcast_object_list(names)
    draft = Path(names[0])
    dcp.save(tensors, storage_writer=dcp.FileSystemWriter(draft, single_file_per_rank=True))
    dist.barrier()
    if dist.get_rank() == 0:
        replace_folder(draft, path)  # `newest_complete` knows drafts, so there is a whole checkpoint at any moment
    dist.barrier()


def consolidate(folder: Path, *, weights_only: bool = False) -> dict[str, Any]:
    """Returns a folder's checkpoint as an ordinary one, in this process's memory.

    Args:
        folder: A checkpoint's folder.
        weights_only: Whether optimizer states are left out.

    Returns:
        What a run with one process would have written: `SMMDModule.load_from_checkpoint` and `--ckpt_path` take it
        once it is in a file.

    Raises:
        ValueError: The folder holds no complete checkpoint.
    """
    if not (folder / ".metadata").is_file() or not (folder / META).is_file():
        raise ValueError(f"{folder} holds no complete sharded checkpoint: {META} or .metadata is missing.")
    from smmd_lightning.compat.sharded_folders import read_sharded

    keys = {STATE} if weights_only else None
    tensors = read_sharded(folder, keys)
    checkpoint = read_file(folder / META)
    checkpoint[STATE] = tensors.pop(STATE, {})
    states = [tensors[f"optimizer_{number}"] for number in range(len(tensors))]
    if not weights_only:
        numbers = [{name: place for place, name in enumerate(_in_order(state))} for state in states]
        checkpoint["optimizer_states"] = [_renamed(*pair) for pair in zip(states, numbers, strict=True)]
    return checkpoint


def saved_names(path: Path) -> set[str]:
    """Returns the names of the weights that a checkpoint's folder or file holds."""
    if path.is_dir():
        prefix = f"{STATE}."
        return {key.removeprefix(prefix) for key in _metadata(path).state_dict_metadata if key.startswith(prefix)}
    return set(read_file(path)[STATE])


def read_file(path: Path) -> dict[str, Any]:
    """Opens a checkpoint's file without running code from it; its tensors are mapped rather than read.

    Raises:
        ValueError: It is damaged, no checkpoint, or holds code; names it and says why.
        OSError: It is not there or may not be read.
    """
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # broken pickles raise nearly anything; those that hold code an UnpicklingError
        raise ValueError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
    if not isinstance(checkpoint, dict):
        raise ValueError(f"{path} is no checkpoint: it holds a {type(checkpoint).__name__}.")
    return checkpoint


def _metadata(path: Path) -> Any:
    from smmd_lightning.compat.sharded_folders import SafeFolderReader

    return SafeFolderReader(path).read_metadata()


def _read(state: dict[str, Any], path: Path) -> None:
    from smmd_lightning.compat.sharded_folders import read_into

    read_into(state, path)


def _in_order(state: dict[str, Any]) -> list[Any]:
    """Names (or numbers) of an optimizer's parameters in its own order."""
    return [name for group in state["param_groups"] for name in group["params"]]


def _renamed(state: dict[str, Any], names: dict[Any, Any]) -> dict[str, Any]:
    """Returns an optimizer's state with its parameters called otherwise."""
    values: dict[Any, dict[str, Tensor]] = state["state"]
    return {
        "state": {names[name]: values[name] for name in names if name in values},
        "param_groups": [
            group | {"params": [names[name] for name in group["params"]]} for group in state["param_groups"]
        ],
    }
