"""The GPU's script at toy size on a CPU: numerics first, one file, and a clear word where Liger-Kernel is missing."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_whole_script_at_toy_size(tmp_path):
    pytest.importorskip("trl", reason="TRL is not installed")
    environment = {**os.environ, "PYTHON": sys.executable, "LIMIT": "1500"}
    command = ["bash", "benchmarks/gpu.sh", "--toy", "--runs", "1", "--threads", "1", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    text = (tmp_path / "gpu.md").read_text()
    assert "## Training" in text
    assert ("Liger-Kernel is not installed" in text) == (find_spec("liger_kernel") is None)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_what_to_do():
    import argparse

    from benchmarks import gpu

    with pytest.raises(SystemExit, match="needs a CUDA device; --toy runs it on a CPU"):
        gpu.cases(argparse.Namespace(toy=False))


def test_the_model_is_made_from_a_configuration_on_the_spot():
    from transformers import AutoConfig, AutoTokenizer

    from benchmarks import gpu

    made = gpu.folder(toy=False)
    config = AutoConfig.from_pretrained(made)
    assert {name: getattr(config, name) for name in gpu.SIZES} == gpu.SIZES
    assert AutoTokenizer.from_pretrained(made).chat_template
    assert not list(Path(made).glob("*.safetensors"))
