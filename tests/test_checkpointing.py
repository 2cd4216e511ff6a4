import os

import pytest
import torch

from smmd_lightning.checkpointing import AtomicCheckpointIO, newest_complete, write_whole


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


def test_a_failed_write_keeps_the_earlier_file(tmp_path):
    path = save(tmp_path, "last.ckpt", 3)

    def full(file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(
        RuntimeError, match=r"last.ckpt could not be written: .*No space left.*earlier file is untouched"
    ):
        write_whole(path, full)
    assert torch.load(path, weights_only=True)["global_step"] == 3
    assert os.listdir(tmp_path) == ["last.ckpt"]
