"""How fast and how exact the maximisers of sample paths are, measured on one core.

The reference on each path is the best value known: that of a Newton search with many times the
budget, or of a measured method where that is better still. Values are compared in float64.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from amortes.bench.maximisers.ensemble import Ensemble, maximise_by_ensemble, values_at
from amortes.corpora.verify import TOLERANCE
from amortes.prior import newton
from amortes.prior.gp import GPPrior
from amortes.prior.newton import NewtonConfig, Optimum
from amortes.prior.paths import Paths
from amortes.random import derive_seeds
from amortes.threads import single_thread

# Milliseconds per path and share of paths solved that Newton promises up to d = 6, and above.
PROMISED, PROMISED_ABOVE = (4.0, 0.99), (12.0, 0.95)
REFERENCE_CHUNK = 10  # paths; the reference search takes 20 MB per tensor and this many paths


Row = dict[str, Any]
"""One method on one set of paths; `solved` is the share within TOLERANCE of the reference."""


def missed_targets(row: Row) -> list[str]:
    """A sentence for each promise of the Newton search that `row` breaks."""
    ms, solved = PROMISED if row["d"] <= 6 else PROMISED_ABOVE
    broken = []
    if row["ms_per_path"] > ms:
        broken.append(f"d={row['d']}: {row['ms_per_path']:.2f} ms per path, not {ms:g}.")
    if row["solved"] < solved:
        broken.append(f"d={row['d']}: {row['solved']:.2%} of the paths solved, not {solved:.0%}.")
    return broken


def draw_paths(prior: GPPrior, d: int, count: int, seed: int) -> Paths:
    """`count` float32 paths of the prior; a longer draw begins with the shorter one."""
    hyper = prior.sample(derive_seeds(seed, d, 0, count=count), d)
    return Paths.sample(prior.kernel, hyper, derive_seeds(seed, d, 1, count=count))


def reference_values(paths: Paths, budget: int) -> Iterator[Tensor]:
    """Maxima of the paths, a few at a time, by a Newton search `budget` times the usual size."""
    config = NewtonConfig.for_dim(paths.d, budget)
    for i in range(0, paths.b, REFERENCE_CHUNK):
        part = paths[i : i + REFERENCE_CHUNK]
        yield values_at(part, newton.maximise_paths(part, config).x)


def compare(
    paths: Paths, reference: Tensor, *, ensemble: Ensemble, ensemble_paths: int, seed: int
) -> list[Row]:
    """Newton on all paths; then the ensemble on the first few, and Newton on the same few.

    `reference` has one value per path, as from `reference_values`.
    """
    few = paths[:ensemble_paths]
    with single_thread():
        newton.maximise_paths(paths[:1])  # warm up: starting points, first use of kernels
        fast = _timed(newton.maximise_paths, paths)
        reference = reference.maximum(fast[0])
        if not few.b:
            return [_row("newton", paths, fast, reference)]
        slow = _timed(lambda p: maximise_by_ensemble(p, ensemble, seed), few)
        fast_few = _timed(newton.maximise_paths, few)
    reference[: few.b] = reference[: few.b].maximum(slow[0])
    rows = [_row("newton", few, fast_few, reference), _row("ensemble", few, slow, reference)]
    return rows if few.b == paths.b else [_row("newton", paths, fast, reference), *rows]


def _timed(maximise: Callable[[Paths], Optimum], paths: Paths) -> tuple[Tensor, float]:
    """The values found, `b`, and the seconds it took."""
    begin = time.thread_time()
    optimum = maximise(paths)
    seconds = time.thread_time() - begin
    return values_at(paths, optimum.x), seconds


def _row(method: str, paths: Paths, timed: tuple[Tensor, float], reference: Tensor) -> Row:
    """Compare with the first values of the reference."""
    values, seconds = timed
    regret = reference[: paths.b] - values
    return {
        "d": paths.d,
        "method": method,
        "paths": paths.b,
        "ms_per_path": 1e3 * seconds / paths.b,
        "solved": float((regret <= TOLERANCE).double().mean()),
        "mean_regret": float(regret.mean()),
        "max_regret": float(regret.max()),
    }
