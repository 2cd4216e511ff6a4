"""Which module may import which, read from the source; see docs/architecture.md."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

LIBRARY = sorted((ROOT / "smmd_lightning").rglob("*.py"))

ALLOWED = {
    "smmd_lightning.types": set(),
    "smmd_lightning.answers": {"types"},
    "smmd_lightning.numbers": {"types"},
    "smmd_lightning.losses": {"types", "numbers"},
    "smmd_lightning.distributions": {"numbers"},
    "smmd_lightning.metrics": {"types", "answers"},
    "smmd_lightning.processors": {"backbones.locate"},
    "smmd_lightning.backbones": {"types", "processors"},
    "smmd_lightning.objective": {"types", "numbers", "losses"},
    "smmd_lightning.loss_sums": {"types", "objective"},
    "smmd_lightning.weight_names": set(),
    "smmd_lightning.module": {
        "types", "numbers", "losses", "objective", "loss_sums", "distributions", "metrics", "processors", "resume",
        "schedules", "settings", "strategies", "weight_names", "backbones.base",
    },
    "smmd_lightning.checks": {
        "numbers", "optimizers", "processors", "strategies", "schedules", "backbones.loading"
    },
    "smmd_lightning.secrets": set(),
    "smmd_lightning.schedules": set(),
    "smmd_lightning.resume": {"schedules"},
    "smmd_lightning.metric_names": set(),
    "datamodules": {"types", "answers", "processors"},
}  # fmt: skip


def imports(file: Path) -> set[str]:
    """Full names of all modules a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def files_of(name: str) -> list[Path]:
    place = ROOT.joinpath(*name.split("."))
    return sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]


@pytest.mark.parametrize("name", ALLOWED)
def test_a_part_imports_only_what_it_may(name):
    own = name.removeprefix("smmd_lightning.")
    allowed = {f"smmd_lightning.{part}" for part in ALLOWED[name] | {own}}
    for file in files_of(name):
        for imported in imports(file):
            if imported == "smmd_lightning" or not imported.startswith("smmd_lightning."):
                continue
            assert any(imported == part or imported.startswith(f"{part}.") for part in allowed), (
                f"{file.relative_to(ROOT)} imports {imported}"
            )


@pytest.mark.parametrize("file", LIBRARY, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_library_knows_nothing_of_the_data_modules(file):
    assert not any(name.split(".")[0] == "datamodules" for name in imports(file))


@pytest.mark.parametrize("file", LIBRARY, ids=lambda file: str(file.relative_to(ROOT)))
def test_only_backbones_import_model_classes(file):
    if "backbones" in file.parts:
        return
    models = [name for name in imports(file) if name.startswith("transformers") and "Model" in name.rpartition(".")[2]]
    assert not models


def test_there_is_no_module_of_odds_and_ends():
    names = {file.stem for package in ("smmd_lightning", "datamodules") for file in (ROOT / package).rglob("*.py")}
    assert not names & {"utils", "util", "helpers", "misc", "common"}
