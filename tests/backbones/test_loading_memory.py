"""Processes on one host that load one model share its file's pages instead of holding copies."""

import sys
from pathlib import Path

import pytest
import torch

from smmd_lightning.backbones import LanguageBackbone

MIB = 2**20


def own_memory():
    """Bytes of this process that are backed by no file, so shared with nobody."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_weights_in_the_files_own_type_stay_in_the_file(tmp_path):
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=65_536, **sizes))
    model.save_pretrained(tmp_path)
    size = sum(parameter.nbytes for parameter in model.parameters())
    assert size > 100 * MIB
    del model
    before = own_memory()
    backbone = LanguageBackbone(str(tmp_path))
    backbone.load()
    assert own_memory() - before < size / 4
    with torch.no_grad():  # what is written to becomes the process's own, and the file stays what it was
        backbone.model.lm_head.weight.zero_()
    assert own_memory() - before > size / 4
    again = LanguageBackbone(str(tmp_path))
    again.load()
    assert again.model.lm_head.weight.any()
