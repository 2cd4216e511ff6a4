"""The command line: Lightning's own, with the links, folders and defaults that this framework adds.

One run lives in one folder, `run_dir`: config.yaml, TensorBoard log, checkpoints/, predictions.jsonl, metrics.json.

    python train.py fit  --config configs/experiment/quickstart.yaml
    python train.py test --config configs/experiment/quickstart.yaml --ckpt_path runs/quickstart/checkpoints/best.ckpt
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from lightning.pytorch import LightningDataModule, Trainer
from lightning.pytorch.callbacks import Callback, LearningRateMonitor, ProgressBar
from lightning.pytorch.cli import ArgsType, LightningArgumentParser, instantiate_class
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.plugins.io import CheckpointIO
from lightning.pytorch.utilities.rank_zero import rank_zero_only

from smmd_lightning.callbacks import (
    BestAndLast,
    Guard,
    Preemption,
    ResultsWriter,
    RunFolder,
    RunLock,
    SampleGallery,
    StartSummary,
    StoppingEarly,
    Throughput,
)
from smmd_lightning.callbacks.csv_log import keep_csv_logs
from smmd_lightning.callbacks.progress import progress
from smmd_lightning.callbacks.trainer_checks import check_seed, check_trainer_settings
from smmd_lightning.checkpoints.atomic import close_umask
from smmd_lightning.checkpoints.files import AtomicCheckpointIO, newest_complete
from smmd_lightning.checkpoints.sharded import META, read_file
from smmd_lightning.checkpoints.trust import refuse_url, trusted
from smmd_lightning.compat.messages import hide_advertisement, hide_warnings_of_lightning, is_failed_union
from smmd_lightning.compat.of_lightning import CommandLine
from smmd_lightning.module import SMMDModule


class SMMDCLI(CommandLine):
    """LightningCLI for `SMMDModule` and any data module.

    Adds: `run_dir`, under which everything is written; the data module's `processor` and `seed`, linked to the
    backbone's path and to `seed_everything`; callbacks with settings of their own (`checkpoint`, `results`).
    """

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Adds `run_dir`, the always-on callbacks and the links."""
        parser.add_argument("--run_dir", type=str, default="runs/default", help="Folder of this run.")
        parser.add_argument(
            "--resume",
            type=Literal["auto", "never"],
            default="never",
            help="auto: fit goes on from the newest complete checkpoint in run_dir, or starts if there is none.",
        )
        parser.add_argument(
            "--allow",
            type=str,
            default="",
            help="Packages, comma between them, whose classes the checkpoint of --ckpt_path may name.",
        )
        parser.add_lightning_class_args(BestAndLast, "checkpoint")
        parser.add_lightning_class_args(StartSummary, "summary")  # before the results, whose page shows its facts
        parser.add_lightning_class_args(SampleGallery, "gallery")
        parser.add_lightning_class_args(ResultsWriter, "results")
        parser.link_arguments("run_dir", "trainer.default_root_dir")
        parser.link_arguments("model.backbone.init_args.path", "data.init_args.processor")
        parser.link_arguments("model.backbone.init_args.revision", "data.init_args.revision")
        parser.link_arguments("model.backbone.init_args.trust_remote_code", "data.init_args.trust_remote_code")
        parser.link_arguments("seed_everything", "data.init_args.seed", compute_fn=_data_seed)

    def before_instantiate_classes(self) -> None:
        """Finds the checkpoint to go on from, where `resume` asks for it; leaves the table to `ResultsWriter`."""
        if self.config.get("subcommand") == "test":
            self.config.test.verbose = False
        if self.config.get("subcommand") != "fit":
            return
        config = self.config.fit
        if config.ckpt_path is not None:  # the trainer itself knows of it only after the callbacks' set-up
            self.save_config_kwargs["overwrite"] = True
        if config.resume != "auto" or config.ckpt_path is not None:
            return
        self.save_config_kwargs["overwrite"] = True
        newest = newest_complete(Path(config.checkpoint.dirpath or Path(config.run_dir) / "checkpoints"))
        config.ckpt_path = None if newest is None else str(newest)
        if getattr(rank_zero_only, "rank", 0) == 0:
            print(f"resume: {f'going on from {newest}' if newest else f'nothing in {config.run_dir} yet, starting'}")

    def instantiate_classes(self) -> None:
        """Builds data, model and trainer; what is wrong with a setting is said in its class's own words alone.

        Raises:
            ValueError: A class refuses a setting.
        """
        try:
            super().instantiate_classes()
        except ValueError as error:
            cause: BaseException = error
            while isinstance(cause.__cause__, ValueError):
                cause = cause.__cause__
            # jsonargparse puts the whole config behind the message, and before it the types that were tried.
            if cause is error or not is_failed_union(error):
                raise
            raise cause from None

    def check_settings(self) -> None:
        """Checks the seed before it is set.

        Raises:
            ValueError: The seed is out of range.
        """
        check_seed(self.chosen(self.config, "seed_everything"))

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """Makes the trainer; without a logger of the user's, TensorBoard writes into `run_dir`."""
        settings = self.chosen(self.config_init, "trainer")
        check_trainer_settings(settings)
        if settings.get("logger") in (None, True):
            kwargs["logger"] = TensorBoardLogger(self.chosen(self.config_init, "run_dir"), name="", version="")
        strategy = settings.get("strategy")
        if (
            isinstance(strategy, str) and "." in strategy
        ):  # a class of its own settings, which Lightning takes by object
            kwargs["strategy"] = instantiate_class((), {"class_path": strategy})
        plugins = settings.get("plugins") or []
        if not any(isinstance(plugin, CheckpointIO) for plugin in plugins):
            kwargs["plugins"] = [*plugins, AtomicCheckpointIO()]
        callbacks = settings.get("callbacks") or []
        callbacks = callbacks if isinstance(callbacks, list) else [callbacks]
        ours: list[Callback] = []
        if settings.get("enable_progress_bar") is not False and not any(isinstance(c, ProgressBar) for c in callbacks):
            ours.append(progress())
        if settings.get("logger") is not False:  # the monitor refuses to be without one
            ours.append(LearningRateMonitor("step"))
        kwargs["callbacks"] = [*callbacks, *ours]
        trainer = super().instantiate_trainer(**kwargs)
        if self.config.get("subcommand") == "fit" and self.chosen(self.config_init, "ckpt_path") is not None:
            keep_csv_logs(trainer)  # here, since the trainer opens its loggers before anything else
        return trainer


def with_checkpoint(args: Sequence[str]) -> list[str]:
    """Puts the model settings stored in a checkpoint in front of the other arguments.

    So they are defaults: what a config file or the command line says afterwards wins. (Lightning does it the other
    way round, which silently ignores `--model.loss_weight` beside `--ckpt_path`.)

    Args:
        args: Command-line arguments, subcommand first.

    Returns:
        The arguments, with `--model=…` after the subcommand where `--ckpt_path` names a checkpoint's file or folder.

    Raises:
        ValueError: The path is a URL, or the checkpoint names a class that only `--allow` could admit.
    """
    args = list(args)
    if not args or args[0].startswith("-"):
        return args
    path, allow = _last_value(args, "--ckpt_path"), _last_value(args, "--allow") or ""
    refuse_url(path)
    file = None if path is None else Path(path) / META if Path(path).is_dir() else Path(path)
    if file is None or not file.is_file():
        return args
    settings = trusted(read_file(file).get("hyper_parameters", {}), path, filter(None, allow.split(",")))
    settings = {name: value for name, value in settings.items() if not name.startswith("_")}
    return [args[0], f"--model={json.dumps(settings)}", *args[1:]] if settings else args


def _last_value(args: Sequence[str], option: str) -> str | None:
    """Returns what follows an option, or its `=`, where it stands last."""
    found = None
    for place, argument in enumerate(args):
        if argument == option and place + 1 < len(args):
            found = args[place + 1]
        elif argument.startswith(f"{option}="):
            found = argument.partition("=")[2]
    return found


def main(args: ArgsType = None, *, run: bool = True) -> SMMDCLI:
    """Runs the command line.

    Args:
        args: Arguments, subcommand first. None: those of this process.
        run: False builds trainer, module and data module, and stops there; the subcommand is left out then.

    Returns:
        The command line, with `trainer`, `model` and `datamodule`.
    """
    hide_advertisement()
    hide_warnings_of_lightning()
    close_umask()
    if args is None:
        sys.argv[1:] = with_checkpoint(sys.argv[1:])
    elif isinstance(args, list):
        args = with_checkpoint(args) if run else args[1:]
    return SMMDCLI(
        SMMDModule,
        LightningDataModule,
        subclass_mode_data=True,
        auto_configure_optimizers=False,
        save_config_callback=RunFolder,
        seed_everything_default=0,
        trainer_defaults={
            "callbacks": [RunLock(), Guard(), StoppingEarly(), Throughput(), Preemption()],
            "use_distributed_sampler": False,
            "enable_model_summary": False,  # StartSummary says it shorter
        },
        args=args,
        run=run,
    )


def _data_seed(seed: bool | int) -> int:
    """`seed_everything: true` draws a seed by itself; data then keep to 0, since they must not depend on luck."""
    return 0 if isinstance(seed, bool) else seed


if __name__ == "__main__":
    main()
