"""What two processes left in a folder, read by one: resharded, made whole, exported."""

import pytest
import torch
from launching import run

from smmd_lightning import SMMDModule
from smmd_lightning.checkpoints.files import newest_complete
from smmd_lightning.commands.export import consolidate_command, export

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(900)]


@pytest.fixture
def folders(outcomes, shared_folder):
    name = "two_leave_a_folder"
    assert not isinstance(outcomes[name], str), outcomes[name]
    return {model: shared_folder / name / model / "checkpoints" / "last.ckpt" for model in ("lora", "tied")}


def test_weights_and_optimizer_reach_another_number_of_processes(folders, shared_folder):
    name = "one_goes_on_from_a_folder_of_two"
    log = run(1, ["scenarios.py", str(shared_folder), name], timeout=150)
    assert (shared_folder / name / "passed.json").exists(), log[-6000:]


def test_a_folder_becomes_one_file_that_loads_by_path_alone(folders, tmp_path, capsys):
    for model, folder in folders.items():
        file = tmp_path / f"{model}.ckpt"
        consolidate_command([str(folder), "--out", str(file)])
        assert capsys.readouterr().out.strip() == str(file)
        checkpoint = torch.load(file, weights_only=True)
        assert checkpoint["global_step"] == 3
        assert checkpoint["optimizer_states"][0]["state"][0]["exp_avg"].any()
        loaded = SMMDModule.load_from_checkpoint(file)
        for name, value in checkpoint["state_dict"].items():
            assert torch.equal(loaded.state_dict()[name], value)
        assert all("lora" in name for name in checkpoint["state_dict"]) == (model == "lora")
        with pytest.raises(SystemExit, match=r"exists. Choose another --out"):
            consolidate_command([str(folder), "--out", str(file)])


def test_a_folder_is_exported_like_a_file(folders, tmp_path):
    from transformers import AutoModelForCausalLM

    for model, folder in folders.items():
        consolidate_command([str(folder), "--out", str(tmp_path / f"{model}.ckpt"), "--weights-only"])
        written = [export(source, tmp_path / f"{model}{number}") for number, source in
                   enumerate((folder, tmp_path / f"{model}.ckpt"))]  # fmt: skip
        first, second = (AutoModelForCausalLM.from_pretrained(place).state_dict() for place in written)
        assert first.keys() == second.keys()
        assert all(torch.equal(first[name], second[name]) for name in first)


def test_an_incomplete_folder_is_refused_and_never_taken_for_none(folders, tmp_path):
    import shutil

    copy = tmp_path / "last.ckpt"
    shutil.copytree(folders["tied"], copy)
    assert newest_complete(tmp_path) == copy
    (copy / ".metadata").unlink()
    with pytest.raises(RuntimeError, match=r"last\.ckpt is incomplete: \.metadata is missing"):
        newest_complete(tmp_path)
    with pytest.raises(SystemExit, match=r"holds no complete sharded checkpoint"):
        consolidate_command([str(copy), "--out", str(tmp_path / "a.ckpt")])
    # A process that died between the last byte and the name: the draft is whole, and found.
    (tmp_path / "drafts").mkdir()
    shutil.copytree(folders["tied"], tmp_path / "drafts" / ".last.ckpt.draft")
    assert newest_complete(tmp_path / "drafts") == tmp_path / "drafts" / ".last.ckpt.draft"
