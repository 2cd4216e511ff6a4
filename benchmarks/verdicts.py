"""How often smmd-compare gives a wrong verdict: families of comparisons without any true difference, drawn and judged.

    python -m benchmarks.verdicts --families 400

Each family is two tasks with the same losses and seeds. The share of families with any "better" or "worse" should be at
most 5 %. Joint p values are computed with fewer points than in a report (good to about 0.0005).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from smmd_lightning.compare import inference

Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def spread(first: float, last: float) -> Draw:
    """Normal residuals, those of the first loss (the baseline) and of the last one spread by these factors."""

    def draw(rng: np.random.Generator, losses: int, seeds: int) -> np.ndarray:
        scale = np.ones((losses, 1))
        scale[0], scale[-1] = first, last
        return scale * rng.normal(size=(losses, seeds))

    return draw


SCENARIOS: dict[str, Draw] = {
    "even spread": spread(1, 1),
    "one loss spreads twice as much": spread(1, 2),
    "the baseline spreads twice as much": spread(2, 1),
    "heavy tails (t, 3 degrees)": lambda rng, losses, seeds: rng.standard_t(3, size=(losses, seeds)),
}


def wrong_share(draw: Draw, losses: int, seeds: int, families: int) -> float:
    """Share of families with at least one wrong "better" or "worse"."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(families):
        tasks = {}
        for task in ("a", "b"):
            values = draw(rng, losses, seeds)
            table = {str(loss): dict(enumerate(row)) for loss, row in enumerate(values.tolist())}
            tasks[task] = inference.compare_task(table, "0")
        verdicts = inference.judge(tasks)
        wrong += any(found.text in ("better", "worse") for of in verdicts.values() for found in of.values())
    return wrong / families


def main(argv: Sequence[str] | None = None) -> None:
    """Prints a table: scenarios by losses and seeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", type=int, default=400)
    families = parser.parse_args(argv).families
    inference.POINTS = 100
    designs = [(3, 3), (4, 5), (8, 8)]
    print("| scenario | " + " | ".join(f"{losses} losses, {seeds} seeds" for losses, seeds in designs) + " |")
    print("|---" * (len(designs) + 1) + "|")
    for name, draw in SCENARIOS.items():
        shares = [wrong_share(draw, losses, seeds, families) for losses, seeds in designs]
        print(f"| {name} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
