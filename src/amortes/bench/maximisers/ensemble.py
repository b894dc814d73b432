"""A small ensemble of first-order optimisers, chosen greedily: how the paper maximises its paths.

Every candidate maximises every path; those slower than the cap are dropped. With V_ij the value
that candidate j found on path i, the regret of an ensemble S on a set of paths is

    mean_i ( max_j V_ij - max_{j in S} V_ij ),

the first maximum being over all candidates within the cap. Greedy forward selection adds the
candidate that lowers it most until it is at most `target`. That is done on the training part of
each of five folds of the paths; the ensemble is the union of the folds' ensembles, and the regret
of each fold's ensemble on the paths it has not seen says how far to trust it.

Reference: Rakotoarison et al. (ICML 2026), "α-PFN: Fast Entropy Search via In-Context Learning".
"""

import dataclasses
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amortes.bench.maximisers import first_order
from amortes.bench.maximisers.first_order import FirstOrderConfig
from amortes.errors import ConfigError, FileError
from amortes.files import read_json, write_json
from amortes.prior.newton import Optimum
from amortes.prior.paths import Paths
from amortes.random import derive_seeds, generator
from amortes.threads import single_thread
from amortes.training import settings

MAX_SECONDS = 10.0  # per path, as in the paper
TARGET = 1e-6
FOLDS = 5
# A candidate is abandoned when it is this many paths' worth of time behind the cap.
SLACK_PATHS = 4


@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """First-order optimisers that are all run; the best of their answers counts."""

    members: tuple[FirstOrderConfig, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise ConfigError("members: an ensemble needs at least one member.")

    def save(self, target: str | Path, *, built: Mapping[str, Any] | None = None) -> None:
        """Write the ensemble as JSON, with a note of how it was `built`."""
        write_json(target, {**settings.to_dict(self), "built": dict(built or {})})

    @classmethod
    def load(cls, source: str | Path) -> "Ensemble":
        """Read an ensemble; anything else is a `FileError` that names the file."""
        content = read_json(source)
        try:
            return settings.from_dict(cls, {"members": content["members"]})
        except (TypeError, KeyError, ConfigError) as error:
            raise FileError(
                f"{source} is not an ensemble ({error}); make one with `amortes prior ensemble`."
            ) from error


# From `amortes prior ensemble --dim 6 --paths 50 --candidates 60 --max-seconds 0.5`: 54 candidates
# within the cap, held-out regret 5e-7 against the best of them, 47 ms per path.
_QUICK = FirstOrderConfig(
    adam=True,
    init_lr=1.0,
    resample_init=False,
    num_samples=200,
    n_iterations_max=100,
    num_repeats=10,
    max_decays=10,
    tol=1e-3,
    decay_factor=0.5,
    clamp=True,
    patience=5,
)
_LONG = dataclasses.replace(
    _QUICK, n_iterations_max=1000, num_repeats=100, tol=1e-6, decay_factor=1.0
)
DEFAULT_ENSEMBLE = Ensemble(members=(_QUICK, _LONG))


def maximise_by_ensemble(paths: Paths, ensemble: Ensemble, seed: int) -> Optimum:
    """The best over all members of what they find on each path, in the dtype of the paths."""
    found = [
        first_order.maximise_by_gradient(paths, member, generator(seed, i)).x
        for i, member in enumerate(ensemble.members)
    ]
    X = torch.stack(found, dim=1)  # b x members x d
    f, winner = paths.to(torch.float64)(X.double()).max(1)
    return Optimum(X[torch.arange(paths.b), winner], f.to(paths.dtype))


def values_at(paths: Paths, x: Tensor) -> Tensor:
    """Values at one point per path, x `b x d`, in float64: `b`.

    Optima found in float32 differ by less than the rounding error of a float32 value, 1e-6.
    """
    return paths.to(torch.float64)(x.double()[:, None]).squeeze(1)


@dataclass(frozen=True, kw_only=True)
class CandidateRun:
    """What one candidate did; fewer entries than there are paths if it was abandoned."""

    config: FirstOrderConfig
    values: tuple[float, ...]  # highest value found on each path
    seconds: tuple[float, ...]  # on one core, for each path; equal within paths that ran together

    @property
    def mean_seconds(self) -> float:
        """Seconds per path on one core."""
        return sum(self.seconds) / len(self.seconds)


def run_candidate(
    paths: Paths,
    config: FirstOrderConfig,
    *,
    seed: int,
    max_seconds: float = MAX_SECONDS,
    work: Path | None = None,
) -> CandidateRun:
    """Maximise all paths with one candidate, or as many as show that it is over the cap.

    With a folder `work` the result is kept there, and taken from there when the same paths,
    candidate, seed and cap come again.
    """
    stored = work and work / f"{_fingerprint(paths, config, seed, max_seconds)}.json"
    if stored is not None and stored.exists():
        kept = {name: tuple(numbers) for name, numbers in read_json(stored).items()}
        return CandidateRun(config=config, **kept)
    group = first_order.batch_size(paths, config)
    values: list[float] = []
    seconds: list[float] = []
    with single_thread():  # so that `time.thread_time` is the time on one core
        for i in range(0, paths.b, group):
            part = paths[i : i + group]
            begin = time.thread_time()
            optimum = first_order.maximise_by_gradient(part, config, generator(seed, i))
            spent = time.thread_time() - begin
            values.extend(values_at(part, optimum.x).tolist())
            seconds.extend([spent / part.b] * part.b)
            if sum(seconds) > max_seconds * (len(seconds) + SLACK_PATHS):
                break
    if stored is not None:
        write_json(stored, {"values": values, "seconds": seconds})
    return CandidateRun(config=config, values=tuple(values), seconds=tuple(seconds))


def _fingerprint(paths: Paths, config: FirstOrderConfig, seed: int, max_seconds: float) -> str:
    digest = hashlib.sha256(json.dumps([vars(config), seed, max_seconds]).encode())
    for tensor in vars(paths).values():
        if tensor is not None:
            digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()[:32]


def select(
    runs: Sequence[CandidateRun],
    num_paths: int,
    *,
    target: float = TARGET,
    max_seconds: float = MAX_SECONDS,
    folds: int = FOLDS,
    seed: int = 0,
) -> tuple[Ensemble, dict[str, Any]]:
    """Choose an ensemble from what the candidates did on `num_paths` paths; and facts about it.

    Times are on one core. `eligible` counts the candidates within the cap; held-out regrets are of
    each fold's ensemble, on the paths it has not seen, and `regret` of the merged one, on all.
    """
    if target < 0:
        raise ConfigError(f"target: must be >= 0, not {target}.")
    if not 2 <= folds <= num_paths:
        raise ConfigError(
            f"folds: need 2 <= folds <= number of paths, not {folds} and {num_paths}."
        )
    eligible = [r for r in runs if len(r.values) == num_paths and r.mean_seconds <= max_seconds]
    if not eligible:
        raise ConfigError(
            f"none of {len(runs)} candidates takes at most {max_seconds:g} s per path; "
            "raise the cap or try more candidates."
        )
    eligible.sort(key=lambda run: run.mean_seconds)  # the faster of two equals is taken
    values = np.array([run.values for run in eligible]).T  # paths x candidates
    rng = np.random.Generator(np.random.Philox(key=int(derive_seeds(seed, count=1)[0])))
    order = rng.permutation(num_paths)
    chosen: set[int] = set()
    sizes, held_out = [], []
    for fold in np.array_split(order, folds):
        members = greedy(np.delete(values, fold, axis=0), target)
        sizes.append(len(members))
        held_out.append(regret(values[fold], members))
        chosen.update(members)
    merged = sorted(chosen)
    times = tuple(1e3 * eligible[j].mean_seconds for j in merged)
    about = {
        "eligible": len(eligible),
        "ms_per_path": sum(times),
        "member_ms_per_path": times,
        "fold_sizes": tuple(sizes),
        "held_out_regret": float(np.mean(held_out)),
        "held_out_regrets": tuple(held_out),
        "regret": regret(values, merged),
    }
    return Ensemble(members=tuple(eligible[j].config for j in merged)), about


def regret(values: np.ndarray, members: Sequence[int]) -> float:
    """Mean shortfall of the best of `members` (columns) from the best of all columns."""
    return float(np.mean(values.max(1) - values[:, members].max(1)))


def greedy(values: np.ndarray, target: float) -> list[int]:
    """Columns of `values` (paths x candidates), best first, until their regret is <= `target`."""
    best = values.max(1)
    reached = np.full(len(values), -np.inf)
    members: list[int] = []
    while not members or np.mean(best - reached) > target:
        with_each = np.maximum(reached[:, None], values)
        members.append(int(np.argmin(np.mean(best[:, None] - with_each, axis=0))))
        reached = with_each[:, members[-1]]
    return members
