"""Which room may import which, read from the source; see docs/architecture.md."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("smmd_lightning", "datamodules")

ROOMS = {
    "smmd_lightning": {"losses", "module", "reading", "vocabulary", "types", "_version"},
    "smmd_lightning._version": set(),
    "smmd_lightning.types": set(),
    "smmd_lightning.masking": set(),
    "smmd_lightning.compat": set(),
    "smmd_lightning.schedules": set(),
    "smmd_lightning.optimizers": set(),
    "smmd_lightning.answers": set(),
    "smmd_lightning.token_table": set(),
    "smmd_lightning.vocabulary": {"token_table"},
    "smmd_lightning.losses": {"answers", "token_table", "types", "vocabulary"},
    "smmd_lightning.metrics": {"types", "answers", "vocabulary"},
    "smmd_lightning.backbones": {"types", "checkpoints"},
    "smmd_lightning.checkpoints": {"schedules", "losses"},
    "smmd_lightning.balance": set(),
    "smmd_lightning.loss_sums": {"types"},
    "smmd_lightning.objective": {"balance", "types", "losses", "loss_sums", "vocabulary"},
    "smmd_lightning.strategies": {"checkpoints", "backbones"},
    "smmd_lightning.answering": {"types", "vocabulary", "metrics", "backbones"},
    "smmd_lightning.module": {
        "answering", "balance", "types", "vocabulary", "losses", "loss_sums", "objective", "metrics", "backbones",
        "checkpoints", "optimizers", "schedules", "strategies",
    },
    "smmd_lightning.report": {"answers", "checkpoints", "losses", "metrics", "types", "vocabulary"},
    "smmd_lightning.trainers": {
        "answers", "metrics", "backbones", "losses", "loss_sums", "objective", "types", "vocabulary",
    },
    "smmd_lightning.callbacks": {
        "_version", "answers",
        "backbones", "checkpoints", "masking", "metrics", "optimizers", "report", "schedules", "strategies", "types",
        "vocabulary",
    },
    "smmd_lightning.cli": {"callbacks", "checkpoints", "module"},
    "smmd_lightning.__main__": {"commands"},
    "smmd_lightning.compare": {"callbacks", "checkpoints", "cli", "masking", "metrics", "report"},
    "smmd_lightning.reading": {
        "answers", "backbones", "checkpoints", "metrics", "module", "report", "vocabulary",
    },
    "smmd_lightning.commands": {
        "backbones", "callbacks", "checkpoints", "cli", "compare", "metrics", "module", "reading", "report", "types",
        "vocabulary",
    },
}  # fmt: skip
"""What each room of the library imports of the others, beside `compat`, which is open to all.

A room that is not named here fails the test.
"""

DATA_ROOMS = {
    "datamodules": {"base"},
    "datamodules.sources": set(),
    "datamodules.pipeline": {"sources"},
    "datamodules.base": {"pipeline", "sources"},
    "datamodules.mixed": {"base", "pipeline", "sources"},
    "datamodules.clock": {"base", "sources"},
    "datamodules.captions": {"base", "sources"},
    "datamodules.chart": {"base", "sources"},
    "datamodules.preferences": set(),
    "datamodules.instrument": {"base", "clock", "sources"},
    "datamodules.published": {"base", "sources"},
    "datamodules.text_math": {"base", "sources"},
    "datamodules.number": {"base", "sources"},
}
OF_THE_LIBRARY = {"types", "answers", "compat.messages", "compat.of_torch", "backbones.processors"}
"""What data modules may import of the library."""


def modules(root: Path = ROOT) -> dict[str, Path]:
    """All modules of both packages by their full names."""
    found = {}
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(file: Path) -> set[str]:
    """Full names of all that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room(name: str) -> str:
    return ".".join(name.split(".")[:2])


def wrong_imports(files: dict[str, Path], rooms: dict[str, set[str]]) -> list[str]:
    """Imports between rooms that `rooms` does not list, and modules in no listed room."""
    wrong = []
    for name, file in files.items():
        if room(name) not in rooms:
            wrong.append(f"{name} is in no room of docs/architecture.md")
            continue
        package = name.split(".")[0]
        allowed = {package, f"{package}.compat", room(name)} | {f"{package}.{part}" for part in rooms[room(name)]}
        found = {room(other) for other in imports(file) if other in files and other.split(".")[0] == package}
        wrong += [f"{name} imports {other}" for other in sorted(found - allowed)]
    return wrong


def circle(files: dict[str, Path]) -> list[str]:
    """The modules of one circle of imports, in order; empty where there is none.

    Imports inside functions and for the type checker count. A package's `__init__` that hands on its modules' names is
    not counted as importing them on behalf of these.
    """
    graph = {
        name: {
            other for other in imports(file) if other in files and other != name and not name.startswith(f"{other}.")
        }
        for name, file in files.items()
    }
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph[name]):
            if found := visit(other, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in graph if (found := visit(name, []))), [])


@pytest.mark.parametrize("rooms", [ROOMS, DATA_ROOMS], ids=PACKAGES)
def test_a_room_imports_only_what_it_may(rooms):
    package = next(iter(rooms))
    assert not wrong_imports({name: file for name, file in modules().items() if name.split(".")[0] == package}, rooms)


@pytest.mark.parametrize("rooms", [ROOMS, DATA_ROOMS], ids=PACKAGES)
def test_the_drawing_in_the_docs_shows_every_room(rooms):
    package = next(iter(rooms))
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawing = text.partition("## Where things are")[2].partition("```")[2].partition("```")[0]
    drawn = drawing.partition(f"{package}/\n")[2].partition("\n" + PACKAGES[1] + "/")[0]
    # A line names rooms, two spaces or less between them, then at least three spaces and what they are for.
    lines = (line for line in drawn.splitlines() if line.startswith("  ") and not line.startswith("   "))
    named = {word.rstrip("/") for line in lines for word in line.strip().split("   ")[0].split()}
    parts = {name.partition(".")[2] for name in rooms} - {"", "__main__", "_version"}
    assert parts == named


def test_files_of_the_product_stay_short():
    lines = {name: len(file.read_text(encoding="utf-8").splitlines()) for name, file in modules().items()}
    assert not {name: count for name, count in lines.items() if count > 280}


def test_nothing_imports_in_a_circle():
    assert not circle(modules())


@pytest.mark.parametrize("inside", ["", "def f():\n    ", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    "])
def test_a_planted_circle_is_found(tmp_path, inside):
    for package in PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / "smmd_lightning" / "a.py").write_text("import smmd_lightning.b\n")
    (tmp_path / "smmd_lightning" / "b.py").write_text(f"{inside}from smmd_lightning import a\n")
    assert set(circle(modules(tmp_path))) == {"smmd_lightning.a", "smmd_lightning.b"}
    assert wrong_imports(modules(tmp_path), {"smmd_lightning": set(), "smmd_lightning.a": {"b"}, "datamodules": set()})


def test_the_library_knows_nothing_of_the_data_modules():
    library = {name: file for name, file in modules().items() if name.startswith("smmd_lightning")}
    assert not [name for name, file in library.items() if any(i.split(".")[0] == "datamodules" for i in imports(file))]


def test_data_modules_know_little_of_the_library():
    allowed = {f"smmd_lightning.{part}" for part in OF_THE_LIBRARY}
    known = set(modules())
    for name, file in modules().items():
        if name.startswith("datamodules"):
            found = {other for other in imports(file) if other in known and other.startswith("smmd_lightning.")}
            found -= {"smmd_lightning.backbones", "smmd_lightning.compat"}  # the packages of those modules
            assert not {o for o in found if not any(o == a or o.startswith(f"{a}.") for a in allowed)}, name


def test_only_backbones_import_model_classes():
    for name, file in modules().items():
        if room(name) not in ("smmd_lightning.backbones", "smmd_lightning.compat"):
            models = [i for i in imports(file) if i.startswith("transformers") and "Model" in i.rpartition(".")[2]]
            assert not models, name


def test_there_is_no_module_of_odds_and_ends_and_none_hides_one_of_python():
    names = {file.stem for file in modules().values()} | {file.parent.name for file in modules().values()}
    assert not names & {"utils", "util", "helpers", "misc", "common"}
    assert not names & {"numbers", "statistics", "secrets", "random", "math", "copy", "platform", "html", "select"}


def test_no_two_public_functions_check_different_things_under_one_name():
    found: dict[str, list[str]] = {}
    for name, file in modules().items():
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("check_"):
                found.setdefault(node.name, []).append(name)
    assert not {name: where for name, where in found.items() if len(where) > 1}
