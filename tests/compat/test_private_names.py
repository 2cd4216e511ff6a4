"""Private names of other libraries: used in one package only, and there as they were when it was written."""

import ast
import importlib
import importlib.util
import inspect
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("smmd_lightning", "datamodules")
FILES = [file for package in OURS for file in (ROOT / package).rglob("*.py") if "compat" not in file.parts]
PRIVATE = re.compile(r"_(?!_)\w+")


def module_name(file):
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def own_names():
    """Private names that our own classes and functions define, by `def`, in a class's body, or as `self._x = `."""
    found = {"_asdict", "_replace", "_fields", "_exit"}  # public in spite of their line: namedtuple, os._exit
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and ast.unparse(node.value) == "self"
            ):
                found.add(node.attr)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
    return found


def foreign_uses(source, own):
    """Private attributes and imports in a file's source that are none of ours, as "line: text"."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and PRIVATE.fullmatch(node.attr):
            of_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not of_self and node.attr not in own:
                found.append(f"{node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(OURS):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            if any(PRIVATE.fullmatch(name) for name in names):
                found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


def test_no_private_name_of_another_library_is_used_elsewhere():
    own = own_names()
    found = {module_name(file): foreign_uses(file.read_text(encoding="utf-8"), own) for file in FILES}
    assert not {name: uses for name, uses in found.items() if uses}


@pytest.mark.parametrize(
    "line", ["trainer.fit_loop._should_accumulate()", "from torch.distributed._tensor import DTensor", "torch._C._x()"]
)
def test_a_planted_private_name_is_found(line):
    assert foreign_uses(f"import torch\n{line}\n", own_names())


def source_of(cls):
    try:
        return inspect.getsource(cls)
    except OSError:
        return ""


def inherited_uses(cls):
    """Private names that a class of ours uses on itself or overrides, and that a foreign base defines."""
    foreign = [base for base in cls.__mro__[1:] if not base.__module__.startswith(OURS) and base is not object]
    # What abc, typing and enum keep on every class is not what this is about; torch._C has no source.
    text = "\n".join(source_of(base) for base in foreign if base.__module__.split(".")[0] in LIBRARIES)
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and PRIVATE.fullmatch(node.attr) and ast.unparse(node.value) in SELF
    } | {name for name in vars(cls) if PRIVATE.fullmatch(name) and name != "_abc_impl"}
    return {name for name in used if re.search(rf"(self\.|def ){name}\b", text)}


LIBRARIES = {"torch", "lightning", "transformers", "peft", "torchmetrics", "datasets", "jsonargparse"}
SELF = ("self", "super()")


def classes_of(module):
    return [cls for _, cls in inspect.getmembers(module, inspect.isclass) if cls.__module__ == module.__name__]


def test_no_private_name_is_inherited():
    without = set() if importlib.util.find_spec("trl") else {"smmd_lightning.trainers.sft"}  # needs the extra
    modules = [importlib.import_module(module_name(file)) for file in FILES if module_name(file) not in without]
    used = {
        cls: inherited_uses(cls) for module in modules for cls in classes_of(module) if cls.__mro__[1] is not object
    }
    assert not {f"{cls.__module__}.{cls.__name__}": names for cls, names in used.items() if names}


def test_a_planted_inherited_name_is_found():
    from smmd_lightning.compat.of_lightning import LastCheckpoint

    class Planted(LastCheckpoint):
        def now(self):
            return self._last_time_checked

    assert inherited_uses(Planted) == {"_last_time_checked"}
