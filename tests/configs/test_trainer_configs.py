"""Every trainer file builds a trainer as far as that goes without its GPUs, and cluster files are sound."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
import yaml
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy

from smmd_lightning.cli import main
from smmd_lightning.strategies import FSDP1Strategy, FSDP2Strategy

ROOT = Path(__file__).parent.parent.parent
TRAINERS = sorted((ROOT / "configs" / "trainer").glob("*.yaml"))
CLUSTER = sorted((ROOT / "configs" / "cluster").iterdir())
QUICKSTART = str(ROOT / "configs" / "experiment" / "quickstart.yaml")


@pytest.mark.parametrize("file", TRAINERS, ids=lambda file: file.stem)
def test_trainer_files_build_with_their_strategy(file, tmp_path):
    settings = yaml.safe_load(file.read_text())
    cpu = ["--trainer.accelerator=cpu", "--trainer.devices=1", "--trainer.num_nodes=1"]
    given = ["fit", "--config", QUICKSTART, f"--trainer={file}", *cpu, f"--run_dir={tmp_path}"]
    cli = main(given, run=False)
    assert cli.trainer.gradient_clip_val == settings["gradient_clip_val"]
    assert cli.trainer.precision == settings["precision"]
    strategy = cli.trainer.strategy
    name = file.stem.partition("_")[0]
    if name == "fsdp2":
        assert isinstance(strategy, FSDP2Strategy)
        assert strategy.compute_dtype == "bfloat16"
        assert strategy.cpu_offload == ("offload" in file.stem)
    elif name == "fsdp1":
        assert isinstance(strategy, FSDP1Strategy)
        assert str(strategy.sharding_strategy) == "ShardingStrategy.FULL_SHARD"
        assert str(strategy.mixed_precision_config.reduce_dtype) == "torch.float32"
        assert str(strategy.mixed_precision_config.param_dtype) == "torch.bfloat16"
    elif name == "ddp":
        assert isinstance(strategy, DDPStrategy)
        assert strategy._ddp_kwargs["find_unused_parameters"] is False


@pytest.mark.parametrize(("device", "backend"), [("cpu", "gloo"), ("cuda", "cpu:gloo,cuda:nccl")])
def test_offloaded_gradients_have_a_process_group_where_they_are(device, backend, monkeypatch):
    monkeypatch.setattr(ModelParallelStrategy, "setup_environment", lambda self: None)
    strategy = FSDP2Strategy(cpu_offload=True)
    strategy.parallel_devices, strategy.cluster_environment = [torch.device(device)], LightningEnvironment()
    strategy.setup_environment()
    assert strategy._get_process_group_backend() == backend


@pytest.mark.parametrize("file", CLUSTER, ids=lambda file: file.name)
def test_cluster_scripts_parse_and_name_options_that_exist(file, capsys):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    subprocess.run([bash, "-n", str(file)], check=True)
    text = file.read_text()
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    known = capsys.readouterr().out
    for option in set(re.findall(r"--(?:resume|trainer\.[a-z_]+)", text)):
        assert option in known
    assert "--resume auto" in text


def test_a_strategy_is_given_by_its_class_alone(tmp_path):
    strategy = "--trainer.strategy=smmd_lightning.strategies.FSDP2Strategy"
    cpu = ["--trainer.accelerator=cpu", "--trainer.devices=1", f"--run_dir={tmp_path}"]
    cli = main(["fit", "--config", QUICKSTART, strategy, *cpu], run=False)
    assert isinstance(cli.trainer.strategy, FSDP2Strategy)
