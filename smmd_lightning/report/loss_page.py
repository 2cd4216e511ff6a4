"""A page that shows what the numeric losses do with a vocabulary: kernel, its graph, cost over the predicted number.

Unusual: costs are shown for a prediction that is 90 % sure of one number and spreads the rest evenly over the others,
not for a certain one: cross-entropy and the losses with soft targets are infinite there.

Shape legend: K predictions, N numeric tokens.

One real example::

    $ smmd-vocab Qwen/Qwen2.5-0.5B --plot loss.html
"""

from __future__ import annotations

import math
from html import escape
from pathlib import PurePath

import torch
from torch import Tensor

from smmd_lightning.losses import (
    Dist2Loss,
    GaussianSmoothingLoss,
    NTILLoss,
    NTLRegressionLoss,
    NTLWASLoss,
    NumericLoss,
    NumericPositions,
    SMMDLoss,
)
from smmd_lightning.report.document import document, section
from smmd_lightning.report.heatmap import heatmap
from smmd_lightning.report.svg import WIDTH, Axis, Plot, figure, number
from smmd_lightning.vocabulary import NumericVocabulary

SURE = 0.9
MOST_CELLS = 64
MOST_NODES = 16


def losses() -> dict[str, NumericLoss]:
    """Returns the losses that are shown, by name, as their defaults have them."""
    return {
        "SMMD": SMMDLoss(),
        "SMMD, MMD term alone": SMMDLoss(term="mmd"),
        "SMMD, smoothness term alone": SMMDLoss(term="smooth"),
        "NTL-WAS": NTLWASLoss(),
        "NTL-MSE": NTLRegressionLoss(),
        "NTIL": NTILLoss(),
        "DIST2": Dist2Loss(),
        "Gaussian smoothing": GaussianSmoothingLoss(),
    }


def one_a_value(vocabulary: NumericVocabulary) -> NumericVocabulary:
    """Returns the vocabulary without twins: of "7" and " 7" the first."""
    values = vocabulary.values.tolist()
    kept = [place for place, value in enumerate(values) if place == 0 or value != values[place - 1]]
    return NumericVocabulary(
        [int(vocabulary.token_ids[place]) for place in kept],
        [values[place] for place in kept],
        [vocabulary.surfaces[place] for place in kept],
    )


def landscape(loss: NumericLoss | None, vocabulary: NumericVocabulary, target: int) -> Tensor:
    """Cost of being `SURE` of each number in turn.

    Args:
        loss: A numeric loss, bound or not. None: cross-entropy.
        vocabulary: Its vocabulary.
        target: Place of the true number in the vocabulary.

    Returns:
        (N,) float32, one cost a predicted number.
    """
    count = len(vocabulary)
    p_KN = torch.full((count, count), (1 - SURE) / (count - 1))
    p_KN.fill_diagonal_(SURE)
    if loss is None:
        return -p_KN[:, target].log()
    row_K = torch.arange(count)
    positions = NumericPositions(row_K, torch.zeros_like(row_K), torch.zeros(count))  # p sums to 1 as it is
    costs_K: Tensor = loss.bind(vocabulary)(p_KN.log(), torch.full((count,), target), positions)
    return costs_K


def loss_page(vocabulary: NumericVocabulary, name: str, target: float | None = None) -> str:
    """Returns the page as HTML.

    Args:
        vocabulary: Of a tokenizer; twins with a leading space are left out.
        name: What the tokenizer is called.
        target: The true number of the landscapes. None: the middle one.

    Raises:
        ValueError: `target` is no number of the vocabulary.
    """
    vocabulary = one_a_value(vocabulary)
    name = PurePath(name).name or name
    values = vocabulary.values.tolist()
    target = values[len(values) // 2] if target is None else target
    if target not in values:
        raise ValueError(
            f"The target {number(target)} is no number of this vocabulary, "
            f"which has {len(values)} from {number(values[0])} to {number(values[-1])}."
        )
    place = values.index(target)
    loss = SMMDLoss()
    kernel_NN = loss.kernel_matrix(vocabulary.values)
    settings = f"{loss.kernel} kernel, bandwidth {', '.join(f'{s:g}' for s in loss.bandwidths)}, squash {loss.squash:g}"
    head = (
        f"<header><h1>{escape(name)}</h1><p>{len(values)} numbers from {number(values[0])} to {number(values[-1])} · "
        f"{escape(settings)}</p></header>"
    )
    costs = {"cross-entropy": landscape(None, vocabulary, place)}
    costs |= {title: landscape(shown, vocabulary, place) for title, shown in losses().items()}
    note = (
        f'<p class="note">The true number is {number(target)}; each plot shows what it costs to be {SURE:.0%} sure of '
        "another one, the rest spread evenly. Cross-entropy sees right and wrong alone.</p>"
    )
    body = (
        head
        + note
        + section(
            "The kernel",
            kernel_heatmap(kernel_NN, values) + kernel_rows(kernel_NN, values) + kernel_graph(kernel_NN, values),
        )
    )
    body += section(f"What a prediction costs when {number(target)} is true", compared(costs, values, target))
    body += section(
        "Each loss on its own scale", "".join(single(title, c, values, target) for title, c in costs.items())
    )
    return document(f"{name} · numeric losses", body)


def kernel_heatmap(kernel_NN: Tensor, values: list[float]) -> str:
    """The kernel as cells; of many numbers every n-th."""
    step = math.ceil(len(values) / MOST_CELLS)
    shown = range(0, len(values), step)
    names = [number(values[place]) for place in shown]
    shares = [[float(kernel_NN[row, column]) for column in shown] for row in shown]
    hints = [
        [f"k({a}, {b}) = {share:.3f}" for b, share in zip(names, line, strict=True)]
        for a, line in zip(names, shares, strict=True)
    ]
    title = "Kernel matrix" + (f", every {step}th number" if step > 1 else "")
    return heatmap(title, names, names, shares, hints, ("number", "number"), every=max(1, len(names) // 8))


def kernel_rows(kernel_NN: Tensor, values: list[float]) -> str:
    """How similar all numbers are to the first, a middle one and the last."""
    plot = Plot(
        "Similarity to one number",
        Axis.over(values, "number"),
        Axis(0, 1, "k", tuple((t / 4, f"{t / 4:g}") for t in range(5))),
    )
    for series, place in enumerate((0, len(values) // 2, len(values) - 1)):
        points = list(zip(values, kernel_NN[place].tolist(), strict=True))
        plot.line(points, number(values[place]), series, dots=len(values) <= 20)
    return plot.render()


def kernel_graph(kernel_NN: Tensor, values: list[float]) -> str:
    """The graph whose Laplacian smooths: numbers on a circle, edges the stronger the more similar."""
    count = min(len(values), MOST_NODES)
    places = [round(n * (len(values) - 1) / (count - 1)) for n in range(count)]
    middle, radius = WIDTH / 2, WIDTH / 2 - 30
    # A gap at the bottom keeps the last number away from the first, which it is least similar to.
    angles = [math.radians(200 + 320 * n / (count - 1)) for n in range(count)]
    spots = [(middle + radius * math.sin(angle), middle - radius * math.cos(angle)) for angle in angles]
    parts = []
    for i in range(count):
        for j in range(i + 1, count):
            weight = float(kernel_NN[places[i], places[j]])
            if weight > 0.02:
                (x0, y0), (x1, y1) = spots[i], spots[j]
                names = f"{number(values[places[i]])} – {number(values[places[j]])}: {weight:.3f}"
                parts.append(
                    f'<line style="stroke:var(--series-0);stroke-width:{4 * weight:.2f};stroke-opacity:{weight:.2f}" '
                    f'x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"><title>{names}</title></line>'
                )
    for place, (x, y) in zip(places, spots, strict=True):
        parts.append(f'<circle class="face" cx="{x:.1f}" cy="{y:.1f}" r="13"/>')
        parts.append(f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{number(values[place])}</text>')
    return figure("The kernel's graph", "".join(parts), WIDTH, WIDTH)


def compared(costs: dict[str, Tensor], values: list[float], target: float) -> str:
    """Losses side by side, each from 0 at its cheapest to 1 at its dearest."""
    plots = []
    for names in (("cross-entropy", "SMMD", "NTL-WAS"), ("SMMD", "NTL-MSE", "DIST2")):
        scaled = Axis(0, 1, "", ((0, "cheapest"), (1, "dearest")))
        plot = Plot(f"{', '.join(names)}", Axis.over(values, "predicted number"), scaled)
        plot.rule((target, 0), (target, 1))
        for series, name in enumerate(names):
            cost_N = costs[name] - costs[name].min()
            cost_N = cost_N / cost_N.max().clamp_min(1e-12)
            plot.line(list(zip(values, cost_N.tolist(), strict=True)), "", series, dots=len(values) <= 20)
        key = "".join(f'<span class="swatch s{series}"></span>{name} ' for series, name in enumerate(names))
        plots.append(plot.render().replace("</figure>", f'<p class="key">{key}</p></figure>'))
    return "".join(plots)


def single(title: str, cost_N: Tensor, values: list[float], target: float) -> str:
    """One loss on its own scale."""
    costs = cost_N.tolist()
    plot = Plot(title, Axis.over(values, "predicted number"), Axis.over(costs, "cost", zero=True))
    plot.rule((target, 0), (target, max(costs)))
    plot.line(list(zip(values, costs, strict=True)), series=0, dots=len(values) <= 20)
    return plot.render()
