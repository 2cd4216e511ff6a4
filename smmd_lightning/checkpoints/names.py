"""Names of weights: which are trained, and whether a checkpoint's are the model's."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn


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


def compare_shapes(found: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    """Compares the shapes in a checkpoint with the model's.

    Args:
        found: Tensors of the checkpoint by name.
        own: Tensors of the model by name, all of those in `found`.

    Raises:
        RuntimeError: Lists the names that have another shape, with both.

    Example:
        >>> import torch
        >>> compare_shapes({"head": torch.zeros(2, 3)}, {"head": torch.zeros(2, 3), "tower": torch.zeros(1)})
    """
    differing = [
        f"{name}: {tuple(value.shape)} in the checkpoint, {tuple(own[name].shape)} in the model"
        for name, value in found.items()
        if value.shape != own[name].shape
    ]
    if differing:
        listed = "\n  ".join(differing[:20])
        raise RuntimeError(
            f"The checkpoint does not fit the model: {len(differing)} weights have another shape.\n  {listed}\n"
            "Use the backbone and adapter settings (its rank, say) that the checkpoint was written with."
        )
