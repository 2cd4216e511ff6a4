"""What an import costs and loads, in a fresh process."""

import subprocess
import sys

import pytest


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    "statement",
    ["import smmd_lightning", "from smmd_lightning import NumericVocabulary, SMMDLoss", "import datamodules"],
)
def test_light_imports_load_neither_lightning_nor_transformers(statement):
    loaded = run(f"{statement}\nimport sys\nprint(*sys.modules)").split()
    assert not {"lightning", "transformers", "torchvision", "datasets", "peft", "matplotlib"} & set(loaded)


def test_every_public_name_is_there():
    import smmd_lightning

    for name in smmd_lightning.__all__:
        assert getattr(smmd_lightning, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        smmd_lightning.Nothing  # noqa: B018
