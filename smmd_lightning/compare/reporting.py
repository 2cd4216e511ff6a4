"""The report of a comparison: what differs, how sure that is, and where each number comes from.

Unusual: it holds no time and no date, so the same runs give the same files, byte for byte.

One real example::

    report = Report(plan, results, choices, out)
    report.write()                       # out/results.csv, report.md, report.html, plots/*.png
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from smmd_lightning.checkpoints.atomic import write_bytes
from smmd_lightning.compare import figures as plots
from smmd_lightning.compare.blocks import Block, Bullets, Heading, Link, Picture, Text, TextTable, markdown
from smmd_lightning.compare.claims_table import claims_section
from smmd_lightning.compare.collecting import Choice, Result, table_text
from smmd_lightning.compare.findings import Findings, final_values
from smmd_lightning.compare.inference import mean_interval
from smmd_lightning.compare.one_run import SETTINGS
from smmd_lightning.compare.page import comparison_page
from smmd_lightning.compare.planning import Cell, Plan
from smmd_lightning.compare.sensitivity import sweeps_section, weights_section
from smmd_lightning.compare.traces import by_loss, read_trace
from smmd_lightning.compare.verdict_tables import NOTES, task_section


class Report:
    """Writes the report of what is finished.

    Args:
        plan: Which runs there are.
        results: Those that are finished, in the order of the plan.
        choices: The weights chosen so far.
        out: Folder of the comparison.
        planned: How many runs there are in all, finished or not.
        added: Losses that the grid gained after its hypotheses were written.
    """

    def __init__(
        self,
        plan: Plan,
        results: Sequence[Result],
        choices: Mapping[Cell, Choice],
        out: Path,
        planned: int,
        added: Sequence[str] = (),
    ) -> None:
        self.plan, self.grid, self.results, self.choices, self.out = plan, plan.grid, results, choices, out
        self.planned, self.added = planned, added
        self.pictures: dict[str, bytes] = {}
        self.findings = Findings(self.grid, final_values(results))
        self._final: dict[Cell, list[Result]] = {}
        for result in results:
            if result.run.phase == "final":
                self._final.setdefault((result.run.task, result.run.loss), []).append(result)

    def write(self) -> list[Path]:
        """Writes all files, each whole or not at all.

        Returns:
            The table, the report as Markdown and as a page.

        Raises:
            ValueError: A task names a metric that its runs do not have.
        """
        blocks = self.blocks()
        files = {
            "results.csv": table_text(self.results).encode(),
            **self.pictures,
            "report.md": markdown(blocks).encode(),
            "report.html": comparison_page(blocks, self.pictures).encode(),
        }
        for name, content in files.items():
            write_bytes(self.out / name, content)
        return [self.out / name for name in ("results.csv", "report.md", "report.html")]

    def blocks(self) -> list[Block]:
        """Returns the whole report; the pictures are in `pictures` afterwards."""
        blocks: list[Block] = [Heading(self.grid.name, 1), Text(self._progress()), *self._method()]
        blocks += claims_section(self.findings, self.added)
        for task in self.grid.tasks:
            if self.findings.losses(task):
                blocks += self._task(task)
        return [*blocks, *self._sensitivity(), *self._runs()]

    def _progress(self) -> str:
        left = self.planned - len(self.results)
        text = f"{len(self.results)} of {self.planned} runs are finished."
        return text if not left else f"{text} {left} are missing: what follows is preliminary."

    def _method(self) -> list[Block]:
        grid = self.grid
        tuned = any(choice.scores for choice in self.choices.values())
        items = [
            f"Each run is a training of its own from its own seed; the {grid.checkpoint} checkpoint answers the test "
            "split, once.",
            *NOTES,
        ]
        if tuned:
            seeds = ", ".join(map(str, grid.tune_seeds))
            items.insert(
                1,
                f"Weights of the losses were chosen on the validation split, from one list for all but where the grid "
                f"says otherwise, each by the mean over seeds {seeds}; the test split was not looked at.",
            )
            common = sorted(set(grid.tune_seeds) & set(grid.seeds))
            if common:
                items.append(
                    f"Seeds {', '.join(map(str, common))} served for tuning and in the end: losses with a weight have "
                    "had more tries on them than the baseline."
                )
        else:
            items.insert(1, "Weights of the losses were given, not tuned.")
        return [Bullets(items)]

    def _task(self, task: str) -> list[Block]:
        losses = self.findings.losses(task)
        weights = {loss: self._final[task, loss][0].run.weight for loss in losses}
        metric = self.grid.tasks[task].metrics[0]
        return [*task_section(self.findings, task, weights), *self._task_pictures(task, metric, losses)]

    def _task_pictures(self, task: str, metric: str, losses: Sequence[str]) -> list[Block]:
        if not plots.available():
            return [Text("No plots: matplotlib is not installed (pip install 'smmd_lightning[plots]').")]
        labels = {loss: self.grid.label(loss) for loss in losses}
        bars = []
        for loss in losses:
            values = list(self.findings.by_seed(task, loss, metric).values())
            bars.append(plots.Bar(labels[loss], values, mean_interval(values)))
        results = [result for loss in losses for result in self._final[task, loss]]
        traces = by_loss(read_trace(result, self.out, metric) for result in results)
        return [
            *self._picture(
                f"{task}-final", "Final metric: seeds, mean, 95 % interval", plots.final_metric(metric, bars)
            ),
            *self._picture(
                f"{task}-curves", "Learning curves: mean and range", plots.curves_of_losses(metric, traces, labels)
            ),
            *self._picture(f"{task}-tolerance", "Accuracy by tolerance", plots.accuracy_by_tolerance(traces, labels)),
        ]

    def _picture(self, name: str, title: str, content: bytes | None) -> list[Block]:
        if content is None:
            return []
        self.pictures[f"plots/{name}.png"] = content
        return [Picture(f"plots/{name}.png", title)]

    def _sensitivity(self) -> list[Block]:
        return [
            *weights_section(self.grid, self.results, self.choices, self._picture),
            *sweeps_section(self.plan, self.results, self.choices, self._picture),
        ]

    def _runs(self) -> list[Block]:
        rows: list[list[str | Link]] = []
        for result in self.results:
            run = result.run
            metric = self.grid.tasks[run.task].metrics[0]
            weight = "–" if run.weight is None else f"{run.weight:g}"
            rows.append(
                [
                    *(run.phase, run.task, self.grid.label(run.loss), run.variant, weight, str(run.seed)),
                    f"{metric} {result.value(metric):.4f}",
                    Link(str(run.folder), f"{run.folder}/{SETTINGS}"),
                ]
            )
        header = ("for", "task", "loss", "setting", "weight", "seed", "value", "folder, its settings")
        note = "Each run: all its metrics are in results.csv, its answers and its log in its folder."
        return [Heading("Runs"), Text(note), TextTable(header, rows)]
