"""How sure a comparison over a few seeds is.

Per task and metric the two-way model is fitted (`two_way`), and every loss is compared with the baseline by Dunnett's
test for blocks: all differences of a task are judged together by their multivariate t distribution. Holm's correction
then accounts for the tasks (`families`).

Unusual: the standard error of a difference is the larger of the pooled one and the difference's own. Losses whose
values spread more than others' would otherwise be judged by the others' spread. `benchmarks/verdicts.py` measures how
often all this gives a wrong verdict.

Shape legend: C losses but the baseline.

One real example::

    found = compare_task({"ce": {1: 0.59, 2: 0.61, 3: 0.58}, "smmd": {1: 0.62, 2: 0.65, 3: 0.60}}, "ce")
    judge({"clocks": found})["clocks"]["smmd"]        # 'within noise'
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from smmd_lightning.compare.corrections import holm, holm_over_tasks
from smmd_lightning.compare.two_way import TwoWay, Values, fit_two_way
from smmd_lightning.report.judged import Interval

LEVEL = 0.05
POWER = 0.8
POINTS = 2000
"""Points per difference of the quasi-random sum behind a joint p, which is then good to about 0.00005."""
UNDEFINED = Interval(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Contrast:
    """A loss against the baseline, on one task and metric.

    Attributes:
        loss: Name of the loss.
        seeds: How many seeds both have.
        difference: Estimated difference, with an interval; those of all losses of the task hold together at 95 %.
        p: Two-sided p, adjusted for all losses of the task.
        p_equal: p of the claim that the difference is smaller than the task's margin; None without a margin.
        detectable: Least true difference that this design finds in 80 % of cases.
        wins: Seeds where the loss is better.
        losses: Seeds where it is worse.
        improves: Whether the estimated difference is for the better.
        problem: Why nothing can be said: `too few seeds`, `undefined`, `uneven spread`; empty otherwise.
    """

    loss: str
    seeds: int
    difference: Interval = UNDEFINED
    p: float = 1.0
    p_equal: float | None = None
    detectable: float = math.nan
    wins: int = 0
    losses: int = 0
    improves: bool = False
    problem: str = ""


@dataclass(frozen=True)
class Verdict:
    """What is said about a contrast once all tasks are taken into account.

    Attributes:
        text: `better`, `worse`, `no practical difference`, `within noise`, or the contrast's problem.
        p: p of the difference, adjusted for all losses and tasks.
        p_equal: p of the equality, adjusted likewise; None without a margin.
    """

    text: str
    p: float
    p_equal: float | None


def compare_task(
    values: Values,
    baseline: str,
    larger_is_better: bool = True,
    margin: float | None = None,
    among: Collection[str] | None = None,
) -> list[Contrast]:
    """Compares every loss of a task with the baseline.

    Args:
        values: The metric by loss and seed.
        baseline: Name of the baseline; losses are compared on the seeds that it has.
        larger_is_better: Whether more of the metric is better.
        margin: Differences smaller than this do not matter in practice; None: none was named.
        among: The only losses that are compared; the others still say how large the residual is. None: all.

    Returns:
        One contrast per loss compared. Losses with a value that is not finite are left out of the model.
    """
    sign = 1 if larger_is_better else -1
    base = values.get(baseline, {})
    others = {loss: found for loss, found in values.items() if loss != baseline}
    common = {loss: [seed for seed in found if seed in base] for loss, found in others.items()}
    finite = {loss: found for loss, found in others.items() if all(map(math.isfinite, found.values()))}
    sound = all(map(math.isfinite, base.values()))
    usable = {loss: found for loss, found in finite.items() if len(common[loss]) > 1} if sound else {}
    model = fit_two_way({baseline: base, **usable}, baseline) if usable else None
    chosen = [loss for loss in common if among is None or loss in among]
    judged = {found.loss: found for found in _contrasts(model, values, baseline, margin, chosen)} if model else {}
    contrasts = []
    for loss in chosen:
        seeds = common[loss]
        signs = [sign * (others[loss][seed] - base[seed]) for seed in seeds]
        wins, losses = sum(d > 0 for d in signs), sum(d < 0 for d in signs)
        problem = "too few seeds" if len(seeds) < 2 else "undefined" if loss not in judged else ""
        if not problem and model is not None and model.uneven_p < LEVEL:
            problem = "uneven spread"
        found = judged.get(loss, Contrast(loss, 0))
        contrasts.append(
            Contrast(
                loss,
                len(seeds),
                found.difference,
                1.0 if problem else found.p,
                found.p_equal,
                found.detectable,
                wins,
                losses,
                improves=sign * found.difference.value > 0,
                problem=problem,
            )
        )
    return contrasts


def judge(contrasts: Mapping[str, Sequence[Contrast]]) -> dict[str, dict[str, Verdict]]:
    """Gives the verdicts on all contrasts of a comparison, by task and loss.

    Differences are one family and equalities another: of each, one wrong verdict or more comes in at most 5 % of cases.
    """
    sound = {task: [found for found in of if not found.problem] for task, of in contrasts.items()}
    different = holm_over_tasks({task: {found.loss: found.p for found in of} for task, of in sound.items()})
    claims = [
        (task, found.loss, found.p_equal) for task, of in sound.items() for found in of if found.p_equal is not None
    ]
    equal = {(task, loss): p for (task, loss, _), p in zip(claims, holm([p for *_, p in claims]), strict=True)}
    verdicts: dict[str, dict[str, Verdict]] = {}
    for task, of in contrasts.items():
        verdicts[task] = {}
        for found in of:
            p, p_equal = different[task].get(found.loss, 1.0), equal.get((task, found.loss))
            text = found.problem or "within noise"
            if not found.problem and p < LEVEL:
                text = "better" if found.improves else "worse"
            elif not found.problem and p_equal is not None and p_equal < LEVEL:
                text = "no practical difference"
            verdicts[task][found.loss] = Verdict(text, p, p_equal)
    return verdicts


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean with Student's 95 % interval, infinite for one value.

    >>> found = mean_interval([1.0, 2.0, 3.0])
    >>> round(found.low, 3), found.value, round(found.high, 3)
    (-0.484, 2.0, 4.484)
    """
    count = len(values)
    if not count:
        return UNDEFINED
    mean = math.fsum(values) / count
    if count == 1:
        return Interval(mean, -math.inf, math.inf)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = float(stats.t.ppf(1 - LEVEL / 2, count - 1)) * math.sqrt(variance / count)
    return Interval(mean, mean - half, mean + half)


def joint_p(t: float, correlation_CC: np.ndarray, freedom: int) -> float:
    """Probability that the largest of C correlated t values is beyond `t` in size (Dunnett 1955, for any correlation).

    Args:
        t: Size of a t value.
        correlation_CC: Correlations of the C differences.
        freedom: Degrees of freedom of the residual.
    """
    if not math.isfinite(t):
        return 0.0
    count = len(correlation_CC)
    if count == 1:
        return float(2 * stats.t.sf(t, freedom))
    if t <= 0:
        return 1.0
    limit_C = np.full(count, t)
    # A fixed state: the integral is a quasi-random sum, and the same table must give the same report.
    inside = stats.multivariate_t.cdf(
        limit_C, shape=correlation_CC, df=freedom, lower_limit=-limit_C, maxpts=POINTS * count, random_state=0
    )
    # Far out the sum's error exceeds the p itself: Student's own p bounds it from below, Bonferroni's from above.
    single = float(2 * stats.t.sf(t, freedom))
    return min(max(1 - float(inside), single), count * single, 1.0)


def joint_quantile(correlation_CC: np.ndarray, freedom: int) -> float:
    """The t beyond which the largest of C correlated t values is in 5 % of cases."""
    low = float(stats.t.ppf(1 - LEVEL / 2, freedom))
    high = float(stats.t.ppf(1 - LEVEL / 2 / len(correlation_CC), freedom))
    if len(correlation_CC) == 1:
        return low
    return float(optimize.brentq(lambda t: joint_p(t, correlation_CC, freedom) - LEVEL, low, high, xtol=1e-4))


def least_detectable(error: float, quantile: float, freedom: int) -> float:
    """The true difference that a test with this quantile finds in 80 % of cases, by the noncentral t distribution."""
    shift = optimize.brentq(lambda d: stats.nct.sf(quantile, freedom, d) - POWER, 0.0, 10 * quantile + 10)
    return float(shift) * error


def _contrasts(
    model: TwoWay, values: Values, baseline: str, margin: float | None, chosen: Sequence[str]
) -> list[Contrast]:
    places = [place for place, loss in enumerate(model.losses) if loss in chosen]
    if not places:
        return []
    correlation_CC, freedom = model.correlation_CC[np.ix_(places, places)], model.freedom
    quantile = joint_quantile(correlation_CC, freedom)
    found = []
    for place in places:
        loss = model.losses[place]
        difference = float(model.differences_C[place])
        pooled = model.residual_sd * math.sqrt(model.scale_CC[place, place])
        error = max(pooled, _own_error(values[loss], values[baseline]))
        t = abs(difference) / error if error > 0 else math.inf if difference else 0.0
        half = quantile * error
        p_equal = None
        if margin is not None:
            room = margin - abs(difference)
            p_equal = float(stats.t.sf(room / error if error > 0 else math.copysign(math.inf, room), freedom))
        found.append(
            Contrast(
                loss,
                0,
                Interval(difference, difference - half, difference + half),
                joint_p(t, correlation_CC, freedom),
                p_equal,
                least_detectable(error, quantile, freedom),
            )
        )
    return found


def _own_error(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float:
    """Standard error of the mean difference from its own seeds alone."""
    differences = [ours[seed] - theirs[seed] for seed in ours if seed in theirs]
    return float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
