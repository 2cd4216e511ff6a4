"""A file or folder is whole or not there, whoever writes, dies, or lays links in the way."""

import os
import resource
import signal
import subprocess
import sys
import threading

import pytest

from smmd_lightning.checkpoints import atomic, drafts


def dead_process():
    """Id of a process of this machine that is no more."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def draft_of(path, pid, machine=None):
    return path.with_name(f".{path.name}.{machine or drafts._machine()}.{pid}.0a1b2c3d.draft")


def test_a_new_file_replaces_the_earlier_one_and_leaves_nothing_else(tmp_path):
    file = tmp_path / "new" / "deep" / "a.json"
    atomic.write_text(file, "first\n")
    atomic.write_text(file, "second \udc80\n")
    assert file.read_bytes() == b"second \\udc80\n"
    atomic.append_text(file, "third\n")
    assert file.read_bytes() == b"second \\udc80\nthird\n"
    assert os.listdir(file.parent) == ["a.json"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_or_is_broken_off_keeps_the_earlier_file(tmp_path, error):
    file = tmp_path / "a.json"
    atomic.write_text(file, "first")

    def fail(opened):
        opened.write(b"half")
        raise error

    expected = RuntimeError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected, match="a.json could not be written: .*No space.*untouched" if error.args else None):
        atomic.write_file(file, fail)
    assert file.read_text() == "first"
    assert os.listdir(tmp_path) == ["a.json"]


def test_only_drafts_of_dead_writers_are_removed(tmp_path):
    file = tmp_path / "last.ckpt"
    dead = draft_of(tmp_path / "best.ckpt", dead_process())
    kept = [
        draft_of(file, os.getppid()),  # alive
        draft_of(file, dead_process(), "node07-00000000"),  # of another machine, where the number may be alive
        tmp_path / ".last.ckpt.7.tmp",  # nobody's, as far as can be told
        tmp_path / ".odd.draft",
    ]
    for draft in [dead, *kept]:
        draft.write_bytes(b"half")
    atomic.write_text(file, "whole")
    assert set(tmp_path.iterdir()) == {file, *kept}


def test_a_number_used_again_by_this_process_does_not_keep_a_dead_draft(tmp_path):
    left = draft_of(tmp_path / "a", os.getpid())
    left.touch()
    atomic.write_text(tmp_path / "a", "")
    assert not left.exists()


def test_writers_of_one_file_side_by_side_each_write_it_whole(tmp_path):
    file, errors = tmp_path / "a", []

    def work(sign):
        try:
            for _ in range(50):
                atomic.write_text(file, sign * 10_000)
                assert len(set(file.read_text())) == 1
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(sign,)) for sign in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert os.listdir(tmp_path) == ["a"]


def test_links_are_replaced_or_refused_but_never_followed(tmp_path):
    target = tmp_path / "precious"
    target.write_text("precious")
    link = tmp_path / "run" / "metrics.json"
    link.parent.mkdir()
    link.symlink_to(target)
    with pytest.raises(OSError, match="symbolic link"):
        atomic.append_text(link, "more")
    atomic.write_text(link, "mine")
    assert link.read_text() == "mine"
    assert not link.is_symlink()
    dead = draft_of(link, dead_process())
    dead.symlink_to(tmp_path)
    atomic.write_text(link, "mine again")
    assert not dead.is_symlink()
    assert target.read_text() == "precious"


@pytest.mark.parametrize(
    ("umask", "file", "folder"), [(0o000, 0o664, 0o775), (0o022, 0o644, 0o755), (0o077, 0o600, 0o700)]
)
def test_permissions_follow_the_umask_and_are_never_for_everybody_to_write(tmp_path, umask, file, folder):
    before = os.umask(umask)
    try:
        atomic.write_text(tmp_path / "new" / "a", "")
        atomic.append_text(tmp_path / "new" / "b", "")
        with atomic.new_folder(tmp_path / "new" / "c"):
            pass
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in [tmp_path / "new", *(tmp_path / "new").iterdir()]}
    assert modes == {"new": folder, "a": file, "b": file, "c": folder}


def test_what_libraries_write_into_a_folder_is_not_for_everybody_to_change(tmp_path):
    before = os.umask(0)
    try:
        with atomic.new_folder(tmp_path / "model") as draft:
            fill(draft)
        draft = atomic.new_draft_folder(tmp_path / "shards")
        fill(draft)
        atomic.replace_folder(draft, tmp_path / "shards")
    finally:
        os.umask(before)
    for folder in (tmp_path / "model", tmp_path / "shards"):
        modes = {path.name: path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")]}
        assert modes == {folder.name: 0o775, "inner": 0o775, "weights": 0o664, "private": 0o600}


def fill(folder):
    (folder / "inner").mkdir()
    (folder / "inner" / "weights").write_text("as a library writes it")
    (folder / "private").touch(mode=0o600)


def test_a_folder_gets_its_name_when_it_is_whole(tmp_path):
    def broken_off():
        with atomic.new_folder(tmp_path / "model") as draft:
            (draft / "half").touch()
            raise ValueError("broken off")

    def slower():
        with atomic.new_folder(tmp_path / "model") as draft:
            (draft / "weights").write_text("slower")
            with atomic.new_folder(tmp_path / "model") as faster:
                (faster / "weights").write_text("faster")

    with pytest.raises(ValueError, match="broken off"):
        broken_off()
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileExistsError, match="model is there already"):
        slower()
    assert (tmp_path / "model" / "weights").read_text() == "faster"
    assert os.listdir(tmp_path) == ["model"]


def test_a_folder_that_may_be_all_that_is_left_stays_until_its_name_is_taken(tmp_path):
    final = tmp_path / "last.ckpt"
    whole = draft_of(final, dead_process())
    whole.mkdir()
    atomic.write_text(tmp_path / "other", "")
    draft = atomic.new_draft_folder(final)
    assert whole.is_dir()
    (draft / "part").write_text("new")
    atomic.replace_folder(draft, final)
    assert sorted(os.listdir(tmp_path)) == ["last.ckpt", "other"]
    again = atomic.new_draft_folder(final)
    atomic.replace_folder(again, final)
    assert not os.listdir(final)


@pytest.mark.parametrize("room", [0, 1000, 60_000])
def test_a_disk_that_is_full_at_any_byte_keeps_the_earlier_file(tmp_path, room):
    """A real limit of the kernel, in a fork."""
    file = tmp_path / "a"
    atomic.write_text(file, "first")
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write itself fails instead
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        try:
            atomic.write_text(file, "x" * 100_000)
        except RuntimeError as error:
            os.write(tell, str(error).encode())
        os._exit(0)
    os.close(tell)
    assert os.waitpid(child, 0)[1] == 0
    with os.fdopen(told) as message:
        assert "a could not be written" in message.read()
    assert file.read_text() == "first"
    assert os.listdir(tmp_path) == ["a"]
