"""Every console command keeps what it writes from being changed by everybody."""

import configparser
import contextlib
import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

CONFIG = configparser.ConfigParser()
CONFIG.read(Path(__file__).parent.parent.parent / "setup.cfg")
COMMANDS = dict(
    line.split(" = ") for line in CONFIG["options.entry_points"]["console_scripts"].strip().splitlines() if line
)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_open_umask_is_closed_before_anything_else(command, monkeypatch):
    module, _, function = COMMANDS[command].partition(":")
    monkeypatch.setattr(sys, "argv", [command, "--help"])
    before = os.umask(0o020)
    try:
        with contextlib.suppress(SystemExit):
            getattr(import_module(module), function)()
        assert os.umask(0) == 0o022  # what was taken away stays so
    finally:
        os.umask(before)
