import os
import resource
import signal
from pathlib import Path

import pytest
import torch

from smmd_lightning.checkpoints.files import AtomicCheckpointIO, newest_complete
from smmd_lightning.checkpoints.sharded import read_file


def save(folder, name, step):
    state = {"global_step": step, "weights": torch.arange(1000.0), "loops": {}, "optimizer_states": []}
    AtomicCheckpointIO().save_checkpoint(state, folder / name)
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


def cut(data):
    return data[: len(data) * 9 // 10]


def emptied(data):
    return b""


def end_lost(data):
    return data[: len(data) // 2] + bytes(len(data) - len(data) // 2)


def one_byte(data):
    """Of a tensor, in the middle."""
    place = data.index(torch.arange(1000.0).numpy().tobytes()) + 2001
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("damage", [cut, emptied, end_lost, one_byte])
def test_a_damaged_checkpoint_is_passed_over_if_another_is_whole_and_refused_if_none_is(tmp_path, damage, caplog):
    torn = save(tmp_path, "last.ckpt", 20)
    torn.write_bytes(damage(torn.read_bytes()))
    with pytest.raises(RuntimeError, match=r"No checkpoint in .* can be read:\n.*last.ckpt.* is damaged"):
        newest_complete(tmp_path)
    assert newest_complete(save(tmp_path, "best.ckpt", 10).parent) == tmp_path / "best.ckpt"
    assert "passed over" in caplog.text
    assert "last.ckpt is damaged" in caplog.text


def test_what_cannot_be_opened_is_named_and_never_taken_for_nothing(tmp_path, monkeypatch):
    path = save(tmp_path, "last.ckpt", 3)

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", denied)
        with pytest.raises(RuntimeError, match=r"can be read:\n.*Permission denied.*last.ckpt"):
            newest_complete(tmp_path)
    monkeypatch.setattr(Path, "iterdir", denied)
    with pytest.raises(RuntimeError, match=r"cannot be read: .*Permission denied"):
        newest_complete(tmp_path)


def test_weights_alone_are_passed_over_with_a_word(tmp_path, caplog):
    AtomicCheckpointIO().save_checkpoint({"global_step": 30, "loops": {}, "state_dict": {}}, tmp_path / "weights.ckpt")
    assert newest_complete(tmp_path) is None
    assert newest_complete(save(tmp_path, "last.ckpt", 20).parent) == tmp_path / "last.ckpt"
    assert "weights.ckpt is passed over: it holds weights alone" in caplog.text


@pytest.mark.parametrize("damage", [cut, emptied, end_lost])
def test_a_damaged_checkpoint_given_by_path_is_named(tmp_path, damage):
    path = save(tmp_path, "last.ckpt", 3)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"last.ckpt cannot be read"):
        AtomicCheckpointIO().load_checkpoint(path)
    with pytest.raises(ValueError, match=r"last.ckpt cannot be read"):
        read_file(path)
    with pytest.raises(FileNotFoundError):
        AtomicCheckpointIO().load_checkpoint(tmp_path / "none.ckpt")


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
