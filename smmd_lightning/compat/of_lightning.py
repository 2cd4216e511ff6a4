"""Private names of Lightning (2.6): loops, checkpoint callback, command line, strategies."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.cli import LightningCLI
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.loggers.csv_logs import ExperimentWriter
from lightning.pytorch.strategies import FSDPStrategy, ModelParallelStrategy
from torch import nn

INSTANTIATOR = ("_instantiator", "lightning.pytorch.cli.instantiate_module")
"""Entry in a checkpoint's settings by which `load_from_checkpoint` knows that they are in LightningCLI's form."""

# -- loops: where training stands inside an accumulation window and an epoch is not public ------------------------


def is_accumulating(trainer: Trainer) -> bool:
    """Whether the micro-batch just trained on took no optimizer step."""
    return trainer.fit_loop._should_accumulate()


def training_is_done(trainer: Trainer) -> bool:
    """Whether no micro-batch will follow in this epoch."""
    return trainer.fit_loop.epoch_loop._is_training_done


def epoch_is_complete(trainer: Trainer) -> bool:
    """Whether all micro-batches of the epoch have been fetched."""
    return trainer.fit_loop.epoch_loop._num_ready_batches_reached()


def validation_is_due(trainer: Trainer) -> bool:
    """Whether validation follows the micro-batch that has just been trained on."""
    loop = trainer.fit_loop
    fetcher = loop._data_fetcher
    return fetcher is not None and bool(trainer.enable_validation) and loop.epoch_loop._should_check_val_fx(fetcher)


def log_step_now(trainer: Trainer) -> None:
    """Writes the step's metrics to the loggers; a callback that ends the run comes before Lightning does it."""
    trainer._logger_connector.update_train_step_metrics()


def count_one_step_less(loops: dict[str, Any]) -> None:
    """Takes back a step in a checkpoint's `fit_loop`, which Lightning counts a second time on resuming."""
    loops["epoch_loop.state_dict"]["_batches_that_stepped"] -= 1


# -- modules ------------------------------------------------------------------------------------------------------


def trainer_of(module: LightningModule) -> Trainer | None:
    """Returns the trainer a module is attached to, or None; `module.trainer` raises instead."""
    return module._trainer


def built_by_cli() -> bool:
    """Whether LightningCLI is building the module, so that `save_hyperparameters` gets its config."""
    from lightning.pytorch.core.mixins.hparams_mixin import _given_hyperparameters

    return _given_hyperparameters.get() is not None


# -- classes with their private parts under public names ----------------------------------------------------------


class CSVWriter(ExperimentWriter):
    """Lightning's writer of CSV logs; what it does about a file that is there already is open (it deletes it)."""

    def look_at_file(self) -> None:
        """Called when the writer is made."""

    def _check_log_dir_exists(self) -> None:
        self.look_at_file()


def csv_writer(logger: CSVLogger) -> ExperimentWriter | None:
    """Returns a logger's writer, None where it has none yet; `logger.experiment` makes one at once."""
    writer = logger._experiment
    return writer if isinstance(writer, ExperimentWriter) else None


def use_csv_writer(logger: CSVLogger, writer: CSVWriter) -> None:
    """Gives a logger its writer before it makes one of its own."""
    logger._experiment = writer


def checks_at_epoch_end(callback: EarlyStopping) -> bool | None:
    """Whether early stopping checks at the end of a training epoch; None: Lightning would decide at set-up."""
    return callback._check_on_train_epoch_end


def check_after_validation(callback: EarlyStopping) -> None:
    """Lets early stopping check after every validation, whatever Lightning would decide."""
    callback._check_on_train_epoch_end = False


class LastCheckpoint(ModelCheckpoint):
    """`ModelCheckpoint` whose last checkpoint can be written at any time; Lightning ties it to the monitored metric."""

    @property
    def last_checked(self) -> float | None:
        """When the clock of the last checkpoint was started (`time.monotonic`)."""
        return self._last_time_checked

    @last_checked.setter
    def last_checked(self, moment: float) -> None:
        self._last_time_checked = moment

    def nothing_to_save(self, trainer: Trainer) -> bool:
        """Whether this step is written already, or checkpoints are not wanted now (sanity check, fast run)."""
        return self._should_skip_saving_checkpoint(trainer)

    @property
    def saved_step(self) -> int:
        """The optimizer step of the checkpoint written last, which is not written again."""
        return self._last_global_step_saved

    @saved_step.setter
    def saved_step(self, step: int) -> None:
        self._last_global_step_saved = step

    def before_writing(self, trainer: Trainer) -> None:
        """Called on all processes before any checkpoint of this callback is written."""

    def _save_checkpoint(self, trainer: Trainer, filepath: str) -> None:
        self.before_writing(trainer)
        super()._save_checkpoint(trainer, filepath)

    def save_last_now(self, trainer: Trainer) -> None:
        """Writes `last.ckpt`, on all processes together."""
        self._save_last_checkpoint(trainer, self._monitor_candidates(trainer))


class CommandLine(LightningCLI):
    """LightningCLI whose order of work is open: a check before the seed is set, and settings by name."""

    def chosen(self, config: Any, name: str) -> Any:
        """Returns a setting, whether or not there is a subcommand above it."""
        return self._get(config, name)

    def check_settings(self) -> None:
        """Called when the settings are parsed and nothing has been built."""

    def _set_seed(self) -> None:
        self.check_settings()
        super()._set_seed()

    def _parse_ckpt_path(self) -> None:
        """Does nothing; Lightning would let a checkpoint's settings replace those of the command line."""


class WrappedFSDP(FSDPStrategy):
    """`FSDPStrategy` with its wrapping open, and any kind of FSDP precision."""

    def wrap(self, model: nn.Module) -> nn.Module:
        """Returns the wrapped model."""
        return super()._setup_model(model)

    def _setup_model(self, model: nn.Module) -> nn.Module:
        return self.wrap(model)

    @property
    def chosen_precision(self) -> Any:
        """The precision plugin as it was set; `precision_plugin` puts a default in the place of None."""
        return self._precision_plugin

    @chosen_precision.setter
    def chosen_precision(self, plugin: Any) -> None:
        self._precision_plugin = plugin


class SpreadModel(ModelParallelStrategy):
    """`ModelParallelStrategy` whose sizes can be set once the number of processes is known."""

    def spread_data(self, processes: int) -> None:
        """Sets how many processes take part in data parallelism; Lightning wants it before it is known."""
        self._data_parallel_size = processes

    def use_backend(self, backend: str) -> None:
        """Sets the backend of the process group, which is otherwise fixed when the strategy is made."""
        self._process_group_backend = backend
