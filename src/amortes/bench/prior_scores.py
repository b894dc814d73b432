"""How well networks, and so their priors, describe real optimisation runs.

After the first n observations of a trace, for some n, in nats and in the user's units:

    evidence    log p(y_1..y_n | X) / n
    next        log p(y | x, D_n), mean over the next `AHEAD` observations of the run
    better      the same, over those of them that are better than the median of y_1..y_n

Units cancel in differences between networks, which are all that means something. Differences are
averaged over the traces of a problem, then over the problems of a family, then over families, each
of which counts the same: "all", and "without <family>", which says whether one family decides.

The output warp is part of the model. A single observation that nobody foresaw counts for no more
than `LEAST` nats at the scale of the results told, or it would decide the mean of a family.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from amortes.acquisition import Fitted
from amortes.acquisition.output_warp import fit_warped
from amortes.bench.traces import Trace
from amortes.errors import ConfigError
from amortes.nets.base import Network
from amortes.threads import single_thread

SIZES = (10, 20, 40)
AHEAD = 10
LEAST = -20.0
SCORES = ("evidence", "next", "better")


@dataclass(frozen=True)
class Score:
    """Scores of one network on one trace after n observations; NaN where there is none."""

    n: int
    evidence: float
    next: float
    better: float


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A network minus the baseline, over the problems of a family, or over families."""

    network: str
    score: str
    families: str
    n: int
    mean: float
    error: float | None  # standard error over problems; None if there is one only
    ahead: float  # share of problems with a positive difference
    problems: int


def score_trace(
    network: Network[Any], trace: Trace, sizes: Sequence[int] = SIZES, *, plain: bool = False
) -> list[Score]:
    """Scores after each n of `sizes` that leaves something to predict; `plain`: no output warp."""
    fit = Fitted if plain else fit_warped
    scores = []
    for n in sizes:
        X, y = trace.X[n : n + AHEAD], trace.y[n : n + AHEAD]
        told = trace.y[:n]
        if len(y) == 0 or float(told.max()) == float(told.min()):
            continue  # nothing to predict, or no unit to predict it in
        with torch.no_grad(), single_thread():
            fitted = fit(network, trace.X[:n], told, maximise=True)
            density = fitted.predict(X).log_prob(y).clamp_min(LEAST - math.log(float(told.std())))
            evidence = fitted.log_evidence
        better = density[y > told.median()]
        scores.append(
            Score(
                n,
                math.nan if evidence is None else evidence / n,
                float(density.mean()),
                float(better.mean()) if len(better) else math.nan,
            )
        )
    return scores


def score_networks(
    networks: Mapping[str, Network[Any]],
    traces: Sequence[Trace],
    sizes: Sequence[int] = SIZES,
    progress: Callable[[str, Trace], None] = lambda name, trace: None,
    *,
    plain_baseline: bool = False,
) -> list[Difference]:
    """Differences of all networks but the first to the first, the baseline.

    With `plain_baseline` that takes results as they are, without the output warp.
    """
    if len(networks) < 2:
        raise ConfigError(f"networks: a baseline and one to compare with it, not {len(networks)}.")
    scored: dict[str, list[list[Score]]] = {name: [] for name in networks}
    for name, network in networks.items():
        for trace in traces:
            plain = plain_baseline and name == next(iter(networks))
            scored[name].append(score_trace(network, trace, sizes, plain=plain))
            progress(name, trace)
    baseline, *others = networks
    return [
        found
        for name in others
        for score in SCORES
        for n in sizes
        for found in _by_family(
            name, score, n, _differences(traces, scored[name], scored[baseline], score, n)
        )
    ]


def _differences(
    traces: Sequence[Trace], ours: list[list[Score]], theirs: list[list[Score]], score: str, n: int
) -> dict[str, dict[str, float]]:
    """Mean difference for each problem, by family and problem."""
    found: dict[str, dict[str, list[float]]] = {}
    for trace, our, their in zip(traces, ours, theirs, strict=True):
        pairs = [(a, b) for a in our for b in their if a.n == b.n == n]
        values = [getattr(a, score) - getattr(b, score) for a, b in pairs]
        if values and math.isfinite(values[0]):
            found.setdefault(trace.family, {}).setdefault(trace.problem, []).extend(values)
    return {
        family: {problem: statistics.fmean(v) for problem, v in problems.items()}
        for family, problems in found.items()
    }


def _by_family(
    network: str, score: str, n: int, differences: Mapping[str, Mapping[str, float]]
) -> Iterable[Difference]:
    groups = {family: list(problems.values()) for family, problems in differences.items()}
    if not groups:
        return
    rows = {family: [values] for family, values in groups.items()}
    rows["all"] = list(groups.values())
    if len(groups) > 1:
        for left in groups:
            rows[f"without {left}"] = [v for family, v in groups.items() if family != left]
    for label, chosen in rows.items():
        values = [value for group in chosen for value in group]
        yield Difference(
            network=network,
            score=score,
            families=label,
            n=n,
            mean=statistics.fmean(statistics.fmean(group) for group in chosen),
            error=error_of_means(chosen),
            ahead=statistics.fmean(value > 0 for value in values),
            problems=len(values),
        )


def error_of_means(groups: Sequence[Sequence[float]]) -> float | None:
    """Standard error of the mean of the means of G groups; None if one has not two values.

    error^2 = sum_g s_g^2 / n_g / G^2,  s_g^2: variance of the n_g values of a group
    """
    if min(map(len, groups), default=0) < 2:
        return None
    squares = sum(statistics.variance(group) / len(group) for group in groups)
    return math.sqrt(squares) / len(groups)
