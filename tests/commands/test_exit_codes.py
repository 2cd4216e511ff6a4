"""Every console command, called as its installed wrapper calls it, says by its exit code whether it did its work."""

import subprocess
import sys
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

import pytest

SETUP = ConfigParser()
SETUP.read(Path(__file__).parents[2] / "setup.cfg")
COMMANDS = dict(line.split(" = ") for line in SETUP["options.entry_points"]["console_scripts"].strip().split("\n"))
FAILING = {
    "smmd": ["fit", "--model.backbone=NoSuchThing"],
    "smmd-vocab": ["/no/such/tokenizer"],
    "smmd-export": ["--ckpt", "/no/such/file.ckpt", "--out", "out"],
    "smmd-consolidate": ["/no/such/folder", "--out", "out.ckpt"],
    "smmd-report": ["/no/such/run"],
    "smmd-compare": ["--config", "/no/such/grid.yaml", "--out", "out"],
}


def exit_code(name, arguments, monkeypatch):
    """What `sys.exit(main())` in the wrapper that pip writes for a console script would leave."""
    module, function = COMMANDS[name].split(":")
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit) as left:
        sys.exit(getattr(import_module(module), function)())
    code = left.value.code
    return 0 if code is None else code if isinstance(code, int) else 1


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_succeeds(name, monkeypatch, capsys):
    assert exit_code(name, ["--help"], monkeypatch) == 0
    assert "usage" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_failure_is_told(name, monkeypatch):
    arguments = FAILING.get(name, ["--no-such-option"])
    assert exit_code(name, arguments, monkeypatch) not in (0, None)


def test_work_that_is_done_succeeds(monkeypatch, capsys):
    assert exit_code("smmd-vocab", ["tiny:llama"], monkeypatch) == 0
    assert exit_code("smmd", ["fit", "--print_config"], monkeypatch) == 0
    capsys.readouterr()


def test_the_package_itself_is_a_command():
    run = subprocess.run(
        [sys.executable, "-m", "smmd_lightning", "--help"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "fit" in run.stdout


def test_data_modules_are_known_without_their_package(monkeypatch, capsys):
    model = ["--model.backbone.class_path=LanguageBackbone", "--model.backbone.init_args.path=tiny:llama"]
    assert exit_code("smmd", ["fit", "--data", "TextMathDataModule", *model, "--print_config"], monkeypatch) == 0
    assert "TextMathDataModule" in capsys.readouterr().out
