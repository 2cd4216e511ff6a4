"""The reliability page names tests, and they are there."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "reliability.md").read_text(encoding="utf-8")


def rows():
    """Fault, what happens and tests of each row of the page's tables."""
    cells = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in PAGE.splitlines() if line[:1] == "|"
    ]
    return [row for row in cells if row[0] != "fault" and set(row[0]) != {"-"}]


def names(cell):
    """Pairs of file and function that a cell names; a file alone stands for all of its tests."""
    found, file = [], None
    for word in re.findall(r"`([^`]+)`", cell):
        if (TESTS / f"{word}.py").is_file():
            file = TESTS / f"{word}.py"
            found.append((file, None))
        elif not word.startswith("SMMD_"):
            found.append((file, word))
    return found


def functions(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:50])
def test_every_line_names_tests_that_exist(row):
    assert len(row) == 3
    if row[2] == "the same":
        return
    named = names(row[2])
    assert named, row[2]
    for file, function in named:
        assert file is not None, row[2]
        # What two processes do together is a scenario, which a test calls by its name.
        assert function is None or {function, f"test_{function}"} & functions(file), (file.name, function)


def test_the_page_has_a_line_for_each_kind_of_fault():
    assert len(rows()) > 30
