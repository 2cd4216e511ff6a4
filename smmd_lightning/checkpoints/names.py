"""Names of weights: which are trained, and whether a checkpoint's are the model's."""

from __future__ import annotations

from torch import nn


def trained_names(module: nn.Module) -> set[str]:
    """Returns the names of trained parameters, without what FSDP1 puts between their parts."""
    trained = (name for name, parameter in module.named_parameters() if parameter.requires_grad)
    return {name.replace("_fsdp_wrapped_module.", "") for name in trained}


def compare_names(found: set[str], own: set[str], optional: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    """Compares the names in a checkpoint with the model's.

    Args:
        found: Names in the checkpoint.
        own: Names of the model's weights, as a checkpoint of the whole has them.
        optional: Those of them that a checkpoint may lack.

    Raises:
        RuntimeError: Lists the names that are missing and those that the model does not know.

    Example:
        >>> compare_names({"head.weight"}, {"head.weight", "tower.weight"}, optional={"tower.weight"})
    """
    missing, unknown = own - found - optional, found - own
    if missing or unknown:
        raise RuntimeError(
            "The checkpoint does not fit the model.\n"
            f"  missing in the checkpoint ({len(missing)}): {sorted(missing)[:20]}\n"
            f"  unknown to the model ({len(unknown)}): {sorted(unknown)[:20]}\n"
            "Use the backbone, adapter and freeze settings that the checkpoint was written with."
        )
