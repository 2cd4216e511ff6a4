"""Ways to run code through what a run reads: each is tried with a trap that would leave a folder behind."""

import contextlib
import functools
import io
import json
import os
import pickle
import shutil
import sys

import pytest
import torch
import torch.distributed.checkpoint as dcp
import yaml
from torch.distributed.checkpoint.metadata import BytesStorageMetadata

from smmd_lightning.backbones import LanguageBackbone
from smmd_lightning.backbones.locate import locate
from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.checkpoints.files import AtomicCheckpointIO, newest_complete
from smmd_lightning.checkpoints.sharded import META, consolidate, read_file, saved_names
from smmd_lightning.checkpoints.trust import trusted
from smmd_lightning.cli import main, with_checkpoint
from smmd_lightning.commands.export import consolidate_command, export_command
from smmd_lightning.compat.sharded_folders import read_into
from smmd_lightning.module import SMMDModule
from smmd_lightning.report.run import read_run

SETTINGS = {
    "backbone": {"class_path": "smmd_lightning.backbones.LanguageBackbone", "init_args": {"path": "tiny:llama"}},
    "numeric_loss": None,
    "_instantiator": "lightning.pytorch.cli.instantiate_module",
}


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return (os.mkdir, (self.folder,))


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a module `planted` in it, whose import springs the trap, and with traps to put into files."""
    (tmp_path / "planted.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'sprung')!r})\nclass Loss: pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    yield tmp_path
    sys.modules.pop("planted", None)


def sprung(place):
    return (place / "sprung").exists()


def checkpoint(place, name="a.ckpt", **content):
    path = place / name
    torch.save(
        {"hyper_parameters": SETTINGS, "state_dict": {}, "global_step": 1, "loops": {}}
        | {"pytorch-lightning_version": "2.6.0", **content},
        path,
    )
    return path


def hostile(place):
    return checkpoint(place, trap=Trap(place / "sprung"))


def with_settings(place, **settings):
    return checkpoint(place, hyper_parameters={**SETTINGS, **settings})


def folder(place, *, metadata=None, value=None, meta=None):
    """A sharded checkpoint with a trap in one of its files."""
    path = place / "sharded.ckpt"
    dcp.save({"state_dict": {"w": torch.ones(2), "lr": 0.5}}, checkpoint_id=path, no_dist=True)
    torch.save({"hyper_parameters": SETTINGS, "global_step": 1} | (meta or {}), path / META)
    if value is not None:  # the bytes of "lr" are replaced, and `.metadata` says where they lie
        described = pickle.loads((path / ".metadata").read_bytes())
        (entry,) = [key for key in described.storage_data if key.fqn == "state_dict.lr"]
        assert isinstance(described.state_dict_metadata["state_dict.lr"], BytesStorageMetadata)
        data = io.BytesIO()
        torch.save(value, data)
        described.storage_data[entry].relative_path = "bytes.distcp"
        described.storage_data[entry].offset, described.storage_data[entry].length = 0, len(data.getvalue())
        (path / "bytes.distcp").write_bytes(data.getvalue())
        (path / ".metadata").write_bytes(pickle.dumps(described))
    if metadata is not None:
        (path / ".metadata").write_bytes(pickle.dumps(metadata))
    return path


def refused(call, *, match=None, errors=(ValueError, RuntimeError, OSError, SystemExit, pickle.UnpicklingError)):
    with pytest.raises(errors, match=match):
        call()


def load(path, **options):
    return SMMDModule.load_from_checkpoint(path, **options)


def command(name, path):
    return main([name, "--model.backbone=LanguageBackbone", "--data=x", "--ckpt_path", str(path)])


def as_torchscript(place):
    class Adds(torch.nn.Module):
        def forward(self, x):
            return x + 1

    torch.jit.script(Adds()).save(str(place / "a.ckpt"))
    return place / "a.ckpt"


def raw_pickle(place):
    (place / "a.ckpt").write_bytes(pickle.dumps({"trap": Trap(place / "sprung")}))
    return place / "a.ckpt"


def old_format(place):
    content = {"trap": Trap(place / "sprung")}
    torch.save(content, place / "a.ckpt", _use_new_zipfile_serialization=False)
    return place / "a.ckpt"


def read_values(place):
    path = folder(place, value=Trap(place / "sprung"))
    state = {"state_dict": {"w": torch.zeros(2), "lr": 0.0}}
    read_into(state, path)


def model_with_pickled_weights(place):
    source = place / "model"
    shutil.copytree(locate("tiny:llama"), source)
    for file in source.glob("*.safetensors"):
        file.unlink()
    torch.save({"model.embed_tokens.weight": Trap(place / "sprung")}, source / "pytorch_model.bin")
    return LanguageBackbone(str(source)).load()


def model_with_code(place, file="config.json"):
    source = place / "model"
    shutil.copytree(locate("tiny:llama"), source)
    (source / "planted.py").write_text((place / "planted.py").read_text())
    for name in ("config.json", "tokenizer_config.json"):
        settings = json.loads((source / name).read_text())
        roles = dict.fromkeys(("AutoConfig", "AutoModelForCausalLM"), "planted.Loss")
        settings["auto_map"] = {**roles, "AutoTokenizer": ["planted.Loss", None]}
        settings["model_type"] = "unheard-of"
        settings["tokenizer_class"] = "Loss"
        (source / name).write_text(json.dumps(settings))
    return str(source)


def trusting_model(place):
    trusting = {"path": model_with_code(place), "trust_remote_code": True}
    return with_settings(place, backbone={**SETTINGS["backbone"], "init_args": trusting})


def hostile_template(place):
    tokenizer = load_processor("tiny:llama")
    tokenizer.chat_template = (
        "{{ cycler.__init__.__globals__.os.mkdir('sprung') }}{{ ''.__class__.__mro__[1].__subclasses__() }}"
    )
    tokenizer.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False)


def yaml_config(place):
    (place / "a.yaml").write_text("run_dir: !!python/object/apply:os.mkdir ['sprung']\n")
    main(["fit", "--config", str(place / "a.yaml")])


def yaml_of_a_run(place):
    (place / "config.yaml").write_text("run_dir: !!python/object/apply:os.mkdir ['sprung']\n")
    return read_run(place).settings


PICKLES = {
    "a checkpoint by hand": lambda p: load(hostile(p)),
    "a checkpoint on the command line": lambda p: command("test", hostile(p)),
    "a checkpoint to go on from": lambda p: command("fit", hostile(p)),
    "the newest checkpoint": lambda p: newest_complete(hostile(p).parent),
    "a checkpoint through the trainer's reader": lambda p: AtomicCheckpointIO().load_checkpoint(hostile(p)),
    "though asked to unpickle": lambda p: AtomicCheckpointIO().load_checkpoint(hostile(p), weights_only=False),
    "by hand though asked to unpickle": lambda p: load(hostile(p), weights_only=False),
    "a plain pickle": lambda p: read_file(raw_pickle(p)),
    "torch's old format": lambda p: read_file(old_format(p)),
    "a TorchScript archive": lambda p: read_file(as_torchscript(p)),
    "export": lambda p: exits(export_command, ["--ckpt", str(hostile(p)), "--out", str(p / "out")]),
    ".metadata": lambda p: consolidate(folder(p, metadata=Trap(p / "sprung"))),
    ".metadata by its names": lambda p: saved_names(folder(p, metadata=Trap(p / "sprung"))),
    ".metadata by command": lambda p: exits(
        consolidate_command, [str(folder(p, metadata=Trap(p / "sprung"))), "--out", str(p / "out.ckpt")]
    ),
    "a function of torch in .metadata": lambda p: consolidate(folder(p, metadata=torch.hub.load)),
    "a value in a sharded folder": lambda p: consolidate(folder(p, value=Trap(p / "sprung"))),
    "a value while resuming": read_values,
    "meta.pt": lambda p: consolidate(folder(p, meta={"trap": Trap(p / "sprung")})),
    "meta.pt on the command line": lambda p: command("test", folder(p, meta={"trap": Trap(p / "sprung")})),
    "a model's weights": model_with_pickled_weights,
}

NAMES = {
    "an optimizer": lambda p: load(with_settings(p, optimizer={"class_path": "planted.Loss", "init_args": {}})),
    "a schedule": lambda p: load(with_settings(p, lr_scheduler={"class_path": "planted.Loss"})),
    "a loss": lambda p: load(with_settings(p, numeric_loss={"class_path": "planted.Loss"})),
    "a loss as bare text": lambda p: load(with_settings(p, numeric_loss="planted.Loss")),
    "a function": lambda p: load(with_settings(p, optimizer={"class_path": "os.mkdir"})),
    "a class inside a class": lambda p: load(
        with_settings(
            p,
            numeric_loss={
                "class_path": "smmd_lightning.losses.PlaceWeightedLoss",
                "init_args": {"loss": {"class_path": "planted.Loss"}},
            },
        )
    ),
    "the module itself": lambda p: load(with_settings(p, _class_path="planted.Loss")),
    "what builds it": lambda p: load(with_settings(p, _instantiator="planted.Loss")),
    "on the command line": lambda p: command("test", with_settings(p, numeric_loss={"class_path": "planted.Loss"})),
    "a name that only begins alike": lambda p: trusted({"x": {"class_path": "smmd_lightning_x.Y"}}, "a"),
}  # fmt: skip

OTHERS = {
    "a URL on the command line": lambda p: command("test", "http://localhost:1/a.ckpt"),
    "a URL by hand": lambda p: load("https://localhost:1/a.ckpt"),
    "a URL to the trainer": lambda p: AtomicCheckpointIO().load_checkpoint("http://localhost:1/a.ckpt"),
    "a file's URL": lambda p: load(f"file://{hostile(p)}"),
    "a model's code": lambda p: LanguageBackbone(model_with_code(p)).load(),
    "a tokenizer's code": lambda p: load_processor(model_with_code(p)),
    "trust asked for by a checkpoint": lambda p: load(trusting_model(p)),
    "trust asked for on the command line's checkpoint": lambda p: LanguageBackbone(
        **json.loads(with_checkpoint(["test", "--ckpt_path", str(trusting_model(p))])[1].partition("=")[2])["backbone"][
            "init_args"
        ]
    ).load(),
    "a chat template": hostile_template,
    "a tag in a config": yaml_config,
    "a tag in a run's config": yaml_of_a_run,
}


def exits(function, arguments):
    status = function(arguments)
    if status:
        raise SystemExit(status)


@pytest.mark.parametrize("way", PICKLES.values(), ids=PICKLES)
def test_no_pickle_runs(way, place):
    refused(functools.partial(way, place))
    assert not sprung(place)


@pytest.mark.parametrize("way", NAMES.values(), ids=NAMES)
def test_no_class_outside_the_list_is_imported(way, place):
    refused(functools.partial(way, place), match="outside|allow|trusted")
    assert not sprung(place)
    assert "planted" not in sys.modules


@pytest.mark.parametrize("way", OTHERS.values(), ids=OTHERS)
def test_nothing_else_that_a_run_reads_runs(way, place):
    with contextlib.suppress(Exception, SystemExit):
        way(place)
        assert way is yaml_of_a_run  # the rest is refused
    assert not sprung(place)


def test_the_traps_would_spring(place):
    """The other tests would pass for nothing if the traps were broken."""
    for spring in (
        lambda: pickle.loads(pickle.dumps(Trap(place / "sprung"))),
        lambda: torch.load(hostile(place), weights_only=False),
        lambda: dcp.FileSystemReader(folder(place, metadata=Trap(place / "sprung"))).read_metadata(),
        lambda: __import__("planted"),
        lambda: yaml.unsafe_load("!!python/object/apply:os.mkdir ['sprung']"),
    ):
        shutil.rmtree(place / "sharded.ckpt", ignore_errors=True)
        with contextlib.suppress(AttributeError):
            spring()
        assert sprung(place)
        (place / "sprung").rmdir()


def test_a_file_outside_a_sharded_folder_is_not_opened(place):
    path = folder(place)
    described = pickle.loads((path / ".metadata").read_bytes())
    for entry in described.storage_data.values():
        entry.relative_path = "../a.ckpt"
    refused(lambda: consolidate(folder(place, metadata=described)), match="does not lie in the folder")


def test_what_a_person_allows_is_taken(place):
    (place / "planted.py").write_text("import torch\nclass Loss(torch.optim.SGD): pass\n")
    optimizer = {"class_path": "planted.Loss", "init_args": {"lr": 0.5}}
    path = with_settings(place, optimizer=optimizer)
    assert trusted({"optimizer": optimizer}, path, ["planted"])["optimizer"] == optimizer
    arguments = with_checkpoint(["test", "--ckpt_path", str(path), "--allow=planted"])
    assert "planted.Loss" in arguments[1]
    code = {"backbone": {"init_args": {"trust_remote_code": True}}}
    assert trusted(code, path) == {"backbone": {"init_args": {"trust_remote_code": False}}}
    assert trusted(code, path, trust_remote_code=True) == code
    freeze = {"backbone": {"init_args": {"freeze": ["torch.nn.weight"], "path": "os.path"}}}
    assert trusted(freeze, path) == freeze
