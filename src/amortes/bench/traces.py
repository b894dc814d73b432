"""Traces of real optimisation runs: what models of real problems are judged by.

A trace is what a run observed, in order: points of the unit cube, and results to be maximised. The
corpus that comes with amortes, `data/traces.npz`, has three runs of 60 evaluations on each problem
of eight families: Optuna's TPE, LogEI with the weights `kernel-robust`, random search. Others are
made from folders of `amortes bench run` (of which a run does not record its first d - 1 points;
they follow from problem and seed).
"""

import json
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from amortes.bench.loop import initial_points, noise
from amortes.bench.problems.registry import family_of, make_problem
from amortes.bench.protocol import Problem
from amortes.bench.results import ResultsFolder
from amortes.errors import FileError
from amortes.files import AnyPath, atomic_path

FACTS = ("problem", "family", "method", "seed", "noise_sd")


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
