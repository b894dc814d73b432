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

A trace is what a run observed, in order: points of the unit cube, and results to be maximised. The
corpus that comes with amortes, `data/traces.npz`, has three runs of 60 evaluations on each problem
of eight families: Optuna's TPE, LogEI with the weights `kernel-robust`, random search. Others are
made from folders of `amortes bench run` (of which a run does not record its first d - 1 points;
they follow from problem and seed).
"""

import json
import math
import statistics
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amortes.acquisition.fitted import Fitted, fit_warped
from amortes.bench.problems.registry import family_of, make_problem
from amortes.bench.protocol import Problem, initial_points, noise
from amortes.bench.results import ResultsFolder
from amortes.errors import ConfigError, FileError
from amortes.files import AnyPath, atomic_path
from amortes.nets.base import Network
from amortes.threads import single_thread

FACTS = ("problem", "family", "method", "seed", "noise_sd")
SIZES = (10, 20, 40)
AHEAD = 10
LEAST = -20.0
SCORES = ("evidence", "next", "better")


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A run: X, `n x d` in the unit cube, and y, `n`, to be maximised; both float64."""

    problem: str
    family: str
    method: str
    seed: int
    noise_sd: float
    X: Tensor
    y: Tensor


def shipped() -> Path:
    """The corpus that comes with amortes."""
    return Path(str(resources.files("amortes.bench") / "data" / "traces.npz"))


def read_traces(path: AnyPath) -> list[Trace]:
    """The traces in a file; a `FileError` if it is not one of traces."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            facts = json.loads(str(arrays["facts"]))
            return [
                Trace(
                    **{name: fact[name] for name in FACTS},
                    X=torch.from_numpy(arrays[f"X{i}"].astype(np.float64)),
                    y=torch.from_numpy(arrays[f"y{i}"].astype(np.float64)),
                )
                for i, fact in enumerate(facts)
            ]
    except FileNotFoundError:
        raise FileError(f"{path} does not exist.") from None
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise FileError(
            f"{path} is not a file of traces ({error}); `amortes bench traces` writes one."
        ) from error


def write_traces(path: AnyPath, traces: Sequence[Trace]) -> None:
    """Keep traces in a compressed npz file: points in single, results in double precision."""
    facts = [{name: getattr(trace, name) for name in FACTS} for trace in traces]
    arrays = {"facts": np.array(json.dumps(facts))}
    for i, trace in enumerate(traces):
        arrays |= {f"X{i}": trace.X.numpy().astype(np.float32), f"y{i}": trace.y.numpy()}
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # of the stubs


def traces_of(folders: Iterable[AnyPath]) -> list[Trace]:
    """The traces of all finished runs in folders of sweeps, sorted."""
    runs: dict[tuple[str, str, int], list[tuple[list[float], float]]] = {}
    for folder in folders:
        rows = ResultsFolder(folder).rows()
        if not rows:
            raise FileError(f"{folder} has no finished runs; `amortes bench run` makes them.")
        for row in rows:
            key = row["problem"], row["method"], row["seed"]
            runs.setdefault(key, []).append((row["x"], row["y"]))
    problems: dict[str, Problem] = {}
    traces = []
    for (name, method, seed), told in sorted(runs.items()):
        problem = problems.setdefault(name, make_problem(name))
        first = initial_points(problem, seed)
        y = problem.value(first) + noise(problem, seed, problem.d)
        later = torch.tensor([x for x, _ in told[1:]], dtype=torch.float64).reshape(-1, problem.d)
        traces.append(
            Trace(
                problem=name,
                family=family_of(name),
                method=method,
                seed=seed,
                noise_sd=problem.noise_sd,
                X=torch.cat([first, later]),
                y=torch.cat([y, torch.tensor([v for _, v in told[1:]], dtype=torch.float64)]),
            )
        )
    return traces


Scores = dict[int, dict[str, float]]
"""Scores of one network on one trace after n observations, by n; NaN where there is none."""
Row = dict[str, Any]
"""A network minus the baseline, over the problems of a family, or over families."""


def score_trace(
    network: Network[Any], trace: Trace, sizes: Sequence[int] = SIZES, *, plain: bool = False
) -> Scores:
    """Scores after each n of `sizes` that leaves something to predict; `plain`: no output warp."""
    fit = Fitted if plain else fit_warped
    scores = {}
    for n in sizes:
        X, y = trace.X[n : n + AHEAD], trace.y[n : n + AHEAD]
        told = trace.y[:n]
        if len(y) == 0 or float(told.max()) == float(told.min()):
            continue  # nothing to predict, or no unit to predict it in
        with torch.no_grad(), single_thread():
            fitted = fit(network, trace.X[:n], told, maximise=True)
            density = fitted.predict(X).log_prob(y).clamp_min(LEAST - math.log(float(told.std())))
            evidence = fitted.log_evidence
        scores[n] = {
            "evidence": math.nan if evidence is None else evidence / n,
            "next": float(density.mean()),
            "better": float(density[y > told.median()].mean()),  # NaN if there are none
        }
    return scores


def score_networks(
    networks: Mapping[str, Network[Any]],
    traces: Sequence[Trace],
    sizes: Sequence[int] = SIZES,
    progress: Callable[[str, Trace], None] = lambda name, trace: None,
    *,
    plain_baseline: bool = False,
) -> list[Row]:
    """Differences of all networks but the first to the first, the baseline.

    With `plain_baseline` that takes results as they are, without the output warp.
    """
    if len(networks) < 2:
        raise ConfigError(f"networks: a baseline and one to compare with it, not {len(networks)}.")
    baseline, *others = networks
    scored: dict[str, list[Scores]] = {name: [] for name in networks}
    for name, network in networks.items():
        for trace in traces:
            plain = plain_baseline and name == baseline
            scored[name].append(score_trace(network, trace, sizes, plain=plain))
            progress(name, trace)
    return [
        {"network": name, "score": score, "families": families, "n": n, **summary}
        for name in others
        for score in SCORES
        for n in sizes
        for families, summary in by_family(
            differences(traces, scored[name], scored[baseline], score, n)
        ).items()
    ]


def differences(
    traces: Sequence[Trace], ours: list[Scores], theirs: list[Scores], score: str, n: int
) -> dict[str, dict[str, float]]:
    """Mean difference for each problem, by family and problem."""
    found: dict[str, dict[str, list[float]]] = {}
    for trace, our, their in zip(traces, ours, theirs, strict=True):
        if n in our and n in their and math.isfinite(gap := our[n][score] - their[n][score]):
            found.setdefault(trace.family, {}).setdefault(trace.problem, []).append(gap)
    return {
        family: {problem: statistics.fmean(v) for problem, v in problems.items()}
        for family, problems in found.items()
    }


def by_family(differences: Mapping[str, Mapping[str, float]]) -> dict[str, Row]:
    """Of each family, of all, and without each one: the mean and its standard error over problems.

    That is None if there is one problem only. `ahead` is the share of problems with a positive
    difference.
    """
    groups = {family: list(problems.values()) for family, problems in differences.items()}
    chosen = {family: [values] for family, values in groups.items()}
    if groups:
        chosen["all"] = list(groups.values())
    if len(groups) > 1:
        for left in groups:
            chosen[f"without {left}"] = [v for family, v in groups.items() if family != left]
    return {
        label: {
            "mean": statistics.fmean(map(statistics.fmean, some)),
            "error": error_of_means(some),
            "ahead": statistics.fmean(value > 0 for values in some for value in values),
            "problems": sum(map(len, some)),
        }
        for label, some in chosen.items()
    }


def error_of_means(groups: Sequence[Sequence[float]]) -> float | None:
    """Standard error of the mean of the means of G groups; None if one has not two values.

    error^2 = sum_g s_g^2 / n_g / G^2,  s_g^2: variance of the n_g values of a group
    """
    if min(map(len, groups), default=0) < 2:
        return None
    squares = sum(statistics.variance(group) / len(group) for group in groups)
    return math.sqrt(squares) / len(groups)
