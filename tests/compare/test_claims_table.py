"""Hypotheses are answered by their own contrast, metric and task."""

from __future__ import annotations

from smmd_lightning.compare.blocks import TextTable, markdown
from smmd_lightning.compare.claims_table import claims_section
from smmd_lightning.compare.findings import Findings
from smmd_lightning.compare.grid import Grid, LossChoice, TaskChoice
from smmd_lightning.compare.hypotheses import Hypothesis


def findings(*claims: Hypothesis) -> Findings:
    """Three losses on one task; B is worse than A by 2 and better than C by 1, with a little noise."""
    values = {
        ("words", loss): {seed: {"crps": start + 0.01 * (seed * number % 7)} for seed in range(8)}
        for number, (loss, start) in enumerate((("a", 1.0), ("b", 3.0), ("c", 4.0)), 1)
    }
    grid = Grid(
        {"words": TaskChoice("x.yaml", metrics=["crps"])},
        {loss: LossChoice(label=loss.upper()) for loss in "abc"},
        list(range(8)),
        baseline="a",
        hypotheses=list(claims),
    )
    return Findings(grid, values)


def test_a_claim_between_two_losses_that_are_not_the_baseline() -> None:
    blocks = claims_section(findings(Hypothesis("crps", ("b", "c"), "less")), ["c"])
    rows = next(block.rows for block in blocks if isinstance(block, TextTable))
    assert len(rows) == 1
    assert rows[0][1] == "B - C"
    assert float(str(rows[0][4]).split()[0]) < -0.9
    assert float(str(rows[0][6])) < 0.05
    assert "Added to the grid afterwards: C" in markdown(blocks)


def test_all_rows_are_one_family() -> None:
    one = Hypothesis("crps", ("b", "a"), "less")
    found = [claims_section(findings(*[one] * count)) for count in (1, 3)]
    p_one, p_three = (
        float(str(next(block.rows for block in blocks if isinstance(block, TextTable))[0][6])) for blocks in found
    )
    assert p_three >= p_one
    assert not claims_section(findings())
