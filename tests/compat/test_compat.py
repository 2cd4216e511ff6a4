"""Private names and message texts of other libraries do what this project takes them for."""

import logging
import re
import warnings
from configparser import ConfigParser
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger
from packaging.requirements import Requirement
from torch import nn
from torch.utils.data import DataLoader, Dataset

from smmd_lightning.compat import messages, of_lightning, of_torch, of_transformers, sharded_folders

SETUP = Path(__file__).parents[2] / "setup.cfg"


def requirements():
    setup = ConfigParser()
    setup.read(SETUP)
    lines = setup["options"]["install_requires"].split("\n")
    return [Requirement(line) for line in lines if line.strip()]


@pytest.mark.parametrize("requirement", requirements(), ids=lambda requirement: requirement.name)
def test_requirements_admit_what_is_tested_here_and_end_at_a_tested_version(requirement):
    assert requirement.specifier.contains(version(requirement.name), prereleases=True)
    bounded = {"torch", "torchvision", "lightning", "transformers", "torchmetrics", "peft", "datasets", "jsonargparse"}
    if requirement.name in bounded:
        assert any(rule.operator in ("<", "<=", "~=", "==") for rule in requirement.specifier)


# -- Lightning ----------------------------------------------------------------------------------------------------


class Watching(LightningModule):
    """Notes at each micro-batch what the loops' private names say."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.said = []

    def training_step(self, batch, index):
        return self.layer(batch).sum()

    def validation_step(self, batch, index):
        self.said.append("validation")

    def on_train_batch_end(self, *_):
        trainer = self.trainer
        of_lightning.log_step_now(trainer)
        said = {
            "accumulating": of_lightning.is_accumulating(trainer),
            "done": of_lightning.training_is_done(trainer),
            "complete": of_lightning.epoch_is_complete(trainer),
            "validation": of_lightning.validation_is_due(trainer),
        }
        self.said.append({name for name, value in said.items() if value})

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def test_the_loops_tell_where_training_stands(tmp_path):
    module = Watching()
    assert of_lightning.trainer_of(module) is None
    rows = DataLoader(torch.ones(5, 1))
    trainer = Trainer(
        max_epochs=1, accumulate_grad_batches=2, val_check_interval=2, num_sanity_val_steps=0, accelerator="cpu",
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        limit_val_batches=1, default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(module, rows, rows)
    assert of_lightning.trainer_of(module) is trainer
    expected = [{"accumulating"}, {"validation"}, "validation", {"accumulating"}, {"validation"}, "validation"]
    assert module.said == [*expected, {"done", "complete"}]
    loops = trainer.fit_loop.state_dict()
    assert loops["epoch_loop.state_dict"]["_batches_that_stepped"] == 3
    of_lightning.count_one_step_less(loops)
    assert loops["epoch_loop.state_dict"]["_batches_that_stepped"] == 2


def test_the_command_line_gives_a_module_its_settings():
    from lightning.pytorch.core.mixins.hparams_mixin import _given_hyperparameters_context

    assert not of_lightning.built_by_cli()
    with _given_hyperparameters_context({}, of_lightning.INSTANTIATOR[1]):
        assert of_lightning.built_by_cli()


def test_classes_have_the_private_parts_that_are_opened():
    made = of_lightning.LastCheckpoint()
    assert made.last_checked is None
    made.last_checked = 3.0
    assert made._last_time_checked == 3.0
    made.saved_step = -1
    assert made._last_global_step_saved == -1
    assert type(made).__base__._save_last_checkpoint
    assert type(made).__base__._monitor_candidates
    for name in ("_set_seed", "_parse_ckpt_path", "_get"):
        assert hasattr(of_lightning.CommandLine.__base__, name)
    assert hasattr(of_lightning.WrappedFSDP.__base__, "_setup_model")
    spread = of_lightning.SpreadModel(process_group_backend="gloo")
    spread.spread_data(4)
    spread.use_backend("nccl")
    assert spread.process_group_backend == "nccl"
    assert {"_data_parallel_size": 4, "_process_group_backend": "nccl"}.items() <= vars(spread).items()


def test_a_csv_log_can_be_gone_on_with(tmp_path):
    class Counting(of_lightning.CSVWriter):
        looked = 0

        def look_at_file(self):
            Counting.looked += 1

    logger = CSVLogger(tmp_path, name="", version="")
    assert of_lightning.csv_writer(logger) is None
    (tmp_path / "metrics.csv").write_text("step\n1\n")
    writer = Counting(log_dir=str(tmp_path))
    of_lightning.use_csv_writer(logger, writer)
    assert Counting.looked == 1
    assert logger.experiment is of_lightning.csv_writer(logger) is writer
    assert (tmp_path / "metrics.csv").read_text() == "step\n1\n"


# -- torch --------------------------------------------------------------------------------------------------------


def test_norms_are_largest_absolute_values():
    values = of_torch.largest_of_each([torch.tensor([1.0, -3.0]), torch.tensor([[2.0]])])
    assert [value.item() for value in values] == [3.0, 2.0]
    assert of_torch.largest_of_each([torch.tensor([1.0, torch.nan])])[0].isnan()
    assert isinstance(of_torch.cpu_has_bfloat16(), bool)


def test_exact_buffers_follow_the_device_and_no_cast():
    module = of_torch.KeepsBuffersExact()
    module.register_buffer("table", torch.tensor([1 / 3]))
    outer = nn.Sequential(module, nn.Linear(1, 1)).bfloat16()
    assert outer[1].weight.dtype == torch.bfloat16
    assert module.table.dtype == torch.float32
    outer.to_empty(device="cpu")
    assert module.table.item() == torch.tensor(1 / 3).item()


def test_muons_momentum_has_torchs_names():
    weight = nn.Parameter(torch.eye(2))
    weight.grad = torch.ones(2, 2)
    muon = of_torch.MuonGroups([weight], lr=0.1)
    parameters, gradients, buffers = muon.gather(muon.param_groups[0])
    assert parameters == [weight]
    assert gradients == [weight.grad]
    assert buffers[0] is muon.state[weight]["momentum_buffer"]


def test_a_schedule_goes_on_where_it_stood_with_its_own_settings():
    def made(rate):
        optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=rate)
        return optimizer, of_torch.SteppedSchedule(optimizer, lambda step: 1 / (1 + step))

    optimizer, schedule = made(1.0)
    for _ in range(3):
        optimizer.step()
        schedule.step()
    later, again = made(2.0)
    again.load_state_dict(schedule.state_dict())
    assert later.param_groups[0]["lr"] == again.get_last_lr()[0] == 2.0 / 4


@pytest.fixture
def sharded_folder(tmp_path):
    import torch.distributed.checkpoint as dcp

    state = {"a": {"x": torch.arange(3), "lr": 0.5}, "b": {"y": torch.ones(1, dtype=torch.bfloat16)}}
    dcp.save(state, checkpoint_id=tmp_path / "folder", no_dist=True)
    return tmp_path / "folder"


def test_a_sharded_folder_is_read_without_a_process_group(sharded_folder):
    found = sharded_folders.read_sharded(sharded_folder, {"a"})["a"]
    assert found["x"].tolist() == [0, 1, 2]
    assert found["lr"] == 0.5
    assert set(sharded_folders.read_sharded(sharded_folder)) == {"a", "b"}


# -- transformers -------------------------------------------------------------------------------------------------


def test_models_tell_their_class_attention_and_blocks():
    from transformers import AutoModelForCausalLM, CLIPVisionConfig, LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1,
        vocab_size=16,
    )  # fmt: skip
    assert of_transformers.can_build(AutoModelForCausalLM, config)
    assert not of_transformers.can_build(AutoModelForCausalLM, CLIPVisionConfig())
    model = LlamaForCausalLM(config)
    model.set_attn_implementation("eager")
    assert of_transformers.attention_of(model.config) == "eager"
    assert of_transformers.block_names(model) == {"LlamaDecoderLayer"}
    model.enable_input_require_grads()
    of_transformers.leave_inputs_without_gradients(model)
    assert not model.model.embed_tokens(torch.zeros(1, dtype=torch.long)).is_leaf
    assert not model.get_input_embeddings()._forward_hooks
    of_transformers.leave_inputs_without_gradients(model)  # nothing is set any more


# -- messages -----------------------------------------------------------------------------------------------------


class Failing(Dataset):
    def __init__(self, kill):
        self.kill = kill

    def __len__(self):
        return 1

    def __getitem__(self, index):
        import os
        import signal

        if self.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("my own")


def test_a_killed_worker_and_a_workers_own_error_are_told_apart():
    with pytest.raises(RuntimeError) as killed:
        next(iter(DataLoader(Failing(True), num_workers=1)))
    assert messages.is_worker_death(killed.value)
    assert not messages.is_error_inside_worker(killed.value)
    with pytest.raises(ValueError, match="my own") as own:
        next(iter(DataLoader(Failing(False), num_workers=1)))
    assert messages.is_error_inside_worker(own.value)


def test_a_failed_allocation_is_known():
    with pytest.raises(RuntimeError) as failed:
        torch.empty(2**60, dtype=torch.uint8)
    assert messages.is_failed_allocation(failed.value)


def test_a_table_without_rows_is_known(tmp_path):
    import datasets

    (tmp_path / "x.json").write_text("\n")
    with pytest.raises(Exception, match="no data") as empty:
        datasets.Dataset.from_json(str(tmp_path / "x.json"), cache_dir=str(tmp_path / "cache"))
    assert messages.is_table_without_rows(empty.value)


def test_a_refusing_class_inside_a_union_is_known():
    from jsonargparse import ArgumentParser

    class Refusing:
        def __init__(self, size: int = 1):
            raise ValueError("mine")

    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--x", type=Refusing | None)
    globals()["Refusing"] = Refusing
    Refusing.__module__, Refusing.__qualname__ = __name__, "Refusing"
    settings = parser.parse_object({"x": {"class_path": f"{__name__}.Refusing"}})
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (the text is what is asked for below)
        parser.instantiate_classes(settings)
    cause = refused.value
    while isinstance(cause.__cause__, ValueError):
        cause = cause.__cause__
    assert str(cause) == "mine"
    assert messages.is_failed_union(refused.value)


@pytest.mark.parametrize(
    ("hide", "text", "category"),
    [
        (messages.hide_warning_of_views, "FSDP2-wrapped module (X) returned a view tensor. Y", UserWarning),
        (messages.hide_warning_of_peft, "model.is_gradient_checkpointing is gone", FutureWarning),
    ],
)
def test_only_the_warning_meant_is_hidden(hide, text, category):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        hide()
        warnings.warn(text, category, stacklevel=1)
        warnings.warn("another", category, stacklevel=1)
    assert [str(warning.message) for warning in seen] == ["another"]


def test_texts_of_hidden_warnings_stand_in_the_libraries():
    import lightning.pytorch.trainer.connectors.logger_connector as connector
    import torch.distributed.fsdp as fsdp

    text = "".join(file.read_text() for file in Path(fsdp.__file__).parent.rglob("_fsdp_state.py"))
    assert re.search(r"FSDP2-wrapped module \(", text)
    assert re.search("returned a view tensor", text)
    assert any("litlogger" in file.read_text() for file in Path(connector.__file__).parents[2].rglob("*.py"))


def test_the_advertisement_is_hidden_and_nothing_else(caplog):
    messages.hide_advertisement()
    messages.hide_warnings_of_lightning()
    engine = logging.getLogger("lightning.pytorch.utilities.rank_zero")
    with caplog.at_level("INFO", logger=engine.name):
        engine.info("try litlogger")
        engine.info("other")
    assert caplog.messages == ["other"]


def test_one_process_shares_nothing():
    assert of_torch.shared_store() is None  # what two share: distributed/scenario_data.py
