"""Examples in docstrings and documents are run."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import datamodules
import smmd_lightning

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = sorted(
    module.name
    for package in (smmd_lightning, datamodules)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_are_true(name):
    if name == "smmd_lightning.trainers.sft":
        pytest.importorskip("trl", reason="TRL is not installed")
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_python_blocks_in_documents_run(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = file.read_text(encoding="utf-8").split("```python\n")[1:]
    names: dict = {}
    for block in blocks:
        exec(compile(block.partition("```")[0], str(file), "exec"), names)
