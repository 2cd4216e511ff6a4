"""Settings of an object as plain data, so that a checkpoint can rebuild it without pickling anything.

One real example::

    >>> import functools, torch
    >>> describe(functools.partial(torch.optim.AdamW, lr=0.001))
    {'class_path': 'torch.optim.AdamW', 'init_args': {'lr': 0.001}}
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from smmd_lightning.compat.of_lightning import INSTANTIATOR, built_by_cli

if TYPE_CHECKING:
    from smmd_lightning.losses import NumericLoss

log = logging.getLogger(__name__)


def describe(value: Any) -> Any:
    """Returns `value` as plain data in LightningCLI's form.

    Plain values stay; a class or a `functools.partial` of one becomes `class_path` and `init_args`; so does an object
    that keeps each constructor argument in an attribute of the same name (all classes of this package do).

    Raises:
        ValueError: The value has no such form, a lambda for example.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [describe(item) for item in value]
    if isinstance(value, Mapping):
        return {key: describe(item) for key, item in value.items()}
    if isinstance(value, functools.partial) and inspect.isclass(value.func) and not value.args:
        return {"class_path": _path(value.func), "init_args": describe(value.keywords)}
    if inspect.isclass(value):
        return {"class_path": _path(value), "init_args": {}}
    names = [item.name for item in fields(value) if item.init] if is_dataclass(value) else _arguments(type(value))
    missing = [name for name in names if not hasattr(value, name)]
    if inspect.isfunction(value) or missing:
        raise ValueError(
            f"{value!r} cannot be written into a checkpoint as plain settings"
            + (f" (no attribute {', '.join(missing)})" if missing else "")
            + ". Use a class, functools.partial of a class, or an object that keeps its arguments as attributes."
        )
    return {"class_path": _path(type(value)), "init_args": {name: describe(getattr(value, name)) for name in names}}


def keep_settings(module: Any, numeric_loss: NumericLoss | None) -> None:
    """Keeps plain settings for checkpoints: LightningCLI's own config, or the same made of the objects given.

    Args:
        module: The `SMMDModule`, as far as its constructor has come.
        numeric_loss: Its numeric loss.
    """
    if built_by_cli():
        module.save_hyperparameters(logger=False)
        return
    try:
        settings = {
            "backbone": describe(module.backbone),
            "numeric_loss": describe(numeric_loss),
            "loss_weight": module.objective.loss_weight,
            "weight_schedule": None if module.weight_schedule is None else asdict(module.weight_schedule),
            "weight_balance": asdict(module.weight_balance),
            "scope": module.objective.scope,
            "optimizer": describe(module.optimizer),
            "lr_scale": module.lr_scale,
            "lr_scheduler": describe(module.lr_scheduler),
            "vocabulary": asdict(module.vocabulary),
            "max_new_tokens": module.max_new_tokens,
            "watch": module.watch,
            "save_trained_only": module.save_trained_only,
            "save_distributions": module.save_distributions,
            **dict([INSTANTIATOR]),
        }
    except ValueError as error:  # also while a checkpoint is being loaded, which brings its settings itself
        log.info("Checkpoints will hold no settings: %s", error)
    else:
        module.save_hyperparameters(settings, logger=False)


def _arguments(cls: type) -> list[str]:
    """Names of a class's constructor arguments; `**settings` stands for those of the next class up."""
    names: list[str] = []
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
        names += [item.name for item in parameters if item.kind is not item.VAR_KEYWORD and item.name not in names]
        if not any(item.kind is item.VAR_KEYWORD for item in parameters):
            break
    return names


def _path(cls: type) -> str:
    module = cls.__module__
    # torch.optim.adamw.AdamW -> torch.optim.AdamW: the name people write, and the one that stays between versions.
    while "." in module:
        parent = module.rpartition(".")[0]
        if getattr(__import__(parent, fromlist=["_"]), cls.__qualname__, None) is not cls:
            break
        module = parent
    return f"{module}.{cls.__qualname__}"
