"""Parameters found by patterns of their names, and weights loaded by name; what does not fit is an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from torch import Tensor, nn


def matching(module: nn.Module, patterns: Iterable[str]) -> dict[str, nn.Parameter]:
    """Returns the parameters whose names fit one of the patterns.

    Args:
        module: Where to look.
        patterns: `fnmatch` patterns of whole parameter names; a plain module name stands for all below it.

    Raises:
        ValueError: A pattern fits nothing.
    """
    found: dict[str, nn.Parameter] = {}
    parameters = dict(module.named_parameters())
    for pattern in patterns:
        fits = {
            name: parameter
            for name, parameter in parameters.items()
            if fnmatchcase(name, pattern) or name.startswith(f"{pattern}.")
        }
        if not fits:
            raise ValueError(
                f"pattern {pattern!r} fits no parameter of {type(module).__name__}; its parts are {_parts(parameters)}"
            )
        found.update(fits)
    return found


def freeze_matching(module: nn.Module, patterns: Sequence[str]) -> None:
    """Freezes the parameters whose names fit, see `matching`."""
    for parameter in matching(module, patterns).values():
        parameter.requires_grad_(False)


def load_trained(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Loads weights into a module from a file that holds only what is trained.

    Args:
        module: The loaded backbone (or the whole Lightning module), adapters and freezing in place.
        state: Tensors by parameter or buffer name.

    Raises:
        ValueError: A trained parameter is missing, or a name or a shape does not fit; nothing has been loaded then.
    """
    own = module.state_dict()
    trained = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    wrong_shape = [name for name in state if name in own and own[name].shape != state[name].shape]
    refuse_mismatch(
        f"the trained weights do not fit {type(module).__name__}",
        missing=sorted(trained - set(state)),
        unexpected=sorted(set(state) - set(own)),
        wrong_shape=wrong_shape,
    )
    module.load_state_dict(dict(state), strict=False)


def refuse_mismatch(what: str, missing: list[str], unexpected: list[str], wrong_shape: list[str]) -> None:
    """Raises an error that lists names which do not fit; returns when there are none.

    Raises:
        ValueError: One of the lists is not empty.
    """
    lists = {"missing": missing, "unexpected": unexpected, "of another shape": wrong_shape}
    lines = [f"  {kind} ({len(names)}): {shortened(names)}" for kind, names in lists.items() if names]
    if lines:
        raise ValueError("\n".join([f"{what}; nothing is half-loaded:", *lines]))


def shortened(names: list[str], most: int = 20) -> str:
    """Returns names as one text: the first ones, and how many more there are."""
    return ", ".join(names[:most]) + (f", … and {len(names) - most} more" if len(names) > most else "")


def _parts(names: Iterable[str]) -> list[str]:
    """The first two levels of the names, which is how a user finds the part meant."""
    return sorted({".".join(name.split(".")[:2]) for name in names})
