"""Ctrl-C: the step is finished, the checkpoint written, the line is clear; a second one leaves at once."""

import os
import signal
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "cases"))
from tiny_runs import RowsData, module, trainer

from smmd_lightning.callbacks import Preemption


class Keyboard(Preemption):
    """Ctrl-C (or another signal) in the middle of a step."""

    def __init__(self, times, place=1, kind=signal.SIGINT):
        super().__init__()
        self.times, self.place, self.kind = times, place, kind

    def on_after_backward(self, trainer, pl_module):
        if trainer.global_step == self.place:
            for _ in range(self.times):
                os.kill(os.getpid(), self.kind)


@pytest.mark.parametrize("workers", [0, 1])
def test_the_first_press_finishes_the_step_saves_and_says_so(workers, tmp_path, capfd):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit) as left:
        trainer(tmp_path, Keyboard(1)).fit(module(), RowsData(num_workers=workers))
    assert left.value.code == 130
    said = capfd.readouterr()
    assert "stopping at the end of this step" in said.err
    last = tmp_path / "checkpoints" / "last.ckpt"
    assert f"stopped by a signal after 2 steps; {last} is written" in said.out
    assert torch.load(last, weights_only=True)["global_step"] == 2
    assert signal.getsignal(signal.SIGINT) == before


def test_the_second_press_leaves_at_once(tmp_path):
    with pytest.raises(SystemExit) as left:  # Lightning turns KeyboardInterrupt into this
        trainer(tmp_path, Keyboard(2)).fit(module(), RowsData())
    assert left.value.code == 1
    assert not (tmp_path / "checkpoints" / "last.ckpt").exists()


@pytest.mark.parametrize(("kind", "code"), [(signal.SIGTERM, 143), (signal.SIGUSR1, 138)])
def test_a_cluster_that_asks_is_left_in_the_same_way(kind, code, tmp_path, capfd):
    with pytest.raises(SystemExit) as left:
        trainer(tmp_path, Keyboard(1, kind=kind)).fit(module(), RowsData())
    assert left.value.code == code
    last = tmp_path / "checkpoints" / "last.ckpt"
    assert f"stopped by a signal after 2 steps; {last} is written" in capfd.readouterr().out
    assert torch.load(last, weights_only=True)["global_step"] == 2


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        (None, 138, "could not be started"),
        ("exit 3", 138, "scontrol requeue 4242 failed"),
        ("echo $@ > $0.said", 0, ""),
    ],
)
def test_the_exit_code_is_0_only_if_the_job_is_in_the_queue_again(script, code, said, tmp_path, monkeypatch, caplog):
    (tmp_path / "bin").mkdir()
    if script is not None:
        (tmp_path / "bin" / "scontrol").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / "scontrol").chmod(0o755)
    made = trainer(tmp_path, Keyboard(1, kind=signal.SIGUSR1))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("SLURM_JOB_ID", "4242")
    with pytest.raises(SystemExit) as left:
        made.fit(module(), RowsData())
    assert left.value.code == code
    assert said in caplog.text
