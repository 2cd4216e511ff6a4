"""Whether two runs ended alike."""

from pathlib import Path

import torch


def flat(value, name=""):
    """All tensors and numbers of a nested state, by path."""
    if isinstance(value, dict):
        return {key: leaf for k, v in value.items() for key, leaf in flat(v, f"{name}.{k}").items()}
    if isinstance(value, (list, tuple)):
        return {key: leaf for k, v in enumerate(value) for key, leaf in flat(v, f"{name}.{k}").items()}
    return {name: value}


def assert_same_end(found: Path, expected: Path, processes: int) -> None:
    """Weights, optimizer, schedule and best score bit by bit; of every micro-batch the samples and the loss."""
    parts = ("state_dict", "optimizer_states", "lr_schedulers", "global_step", "steps_without_numbers")
    for file in ("last.ckpt", "best.ckpt"):
        states = []
        for folder in (found, expected):
            checkpoint = torch.load(folder / "run" / "checkpoints" / file, weights_only=True)
            scores = [state["best_model_score"] for key, state in checkpoint["callbacks"].items() if "BestAnd" in key]
            assert len(scores) == 1
            states.append(flat({part: checkpoint[part] for part in parts} | {"scores": scores}))
        assert states[0].keys() == states[1].keys()
        for name, value in states[1].items():
            same = torch.equal(states[0][name], value) if torch.is_tensor(value) else states[0][name] == value
            assert same, (file, name)
    for rank in range(processes):
        name = f"seen.{rank}.txt"
        seen, whole = ((folder / "run" / name).read_text().splitlines() for folder in (found, expected))
        assert len(whole) == 10
        assert set(seen) == set(whole)
        assert seen[-1] == whole[-1]
