import os
import resource
import signal

import pytest
import torch

from smmd_lightning.checkpoints.files import AtomicCheckpointIO, newest_complete


def save(folder, name, step):
    AtomicCheckpointIO().save_checkpoint({"global_step": step, "weights": torch.arange(1000.0)}, folder / name)
    return folder / name


def test_reads_back_what_was_written_and_leaves_nothing_else(tmp_path):
    path = save(tmp_path, "last.ckpt", 3)
    assert torch.load(path, weights_only=True)["weights"].sum() == 499500
    assert os.listdir(tmp_path) == ["last.ckpt"]


def test_the_newest_is_the_one_with_most_steps(tmp_path):
    assert newest_complete(tmp_path / "none") is None
    assert newest_complete(tmp_path) is None
    latest = save(tmp_path, "best.ckpt", 20)
    save(tmp_path, "last.ckpt", 10)
    assert newest_complete(tmp_path) == latest


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_half_written_checkpoint_is_passed_over(tmp_path, share):
    whole = save(tmp_path, "a.ckpt", 10)
    torn = save(tmp_path, "b.ckpt", 20)
    torn.write_bytes(torn.read_bytes()[: int(share * torn.stat().st_size)])
    assert newest_complete(tmp_path) == whole


def test_a_sharded_one_counts_when_its_metadata_is_there(tmp_path):
    whole = save(tmp_path, "a.ckpt", 10)
    folder = tmp_path / "b.ckpt"
    folder.mkdir()
    save(folder, "meta.pt", 20)
    assert newest_complete(tmp_path) == whole
    (folder / ".metadata").touch()
    assert newest_complete(tmp_path) == folder


@pytest.mark.parametrize("room", [0, 60_000])
def test_a_disk_that_is_full_while_torch_writes_keeps_the_earlier_file(tmp_path, room):
    """A real limit of the kernel, in a fork: torch writes what it can."""
    path = save(tmp_path, "last.ckpt", 3)
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write itself fails instead
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        try:
            AtomicCheckpointIO().save_checkpoint({"global_step": 4, "weights": torch.zeros(100_000)}, path)
        except RuntimeError as error:
            os.write(tell, str(error).encode())
        os._exit(0)
    os.close(tell)
    assert os.waitpid(child, 0)[1] == 0
    with os.fdopen(told) as message:
        assert "last.ckpt could not be written" in message.read()
    assert torch.load(path, weights_only=True)["global_step"] == 3
    assert os.listdir(tmp_path) == ["last.ckpt"]
