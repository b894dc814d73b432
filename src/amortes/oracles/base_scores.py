"""How good a base network is, against the fully Bayesian reference.

Per cell (dimension d, dataset size n) of `amortes.oracles.base_scores`, all exact given the tasks,
with no draw of y anywhere:

    excess      cross-entropy against N(m, v + s^2) less that of the reference, in nats
    cover_50    share of N(m, v + s^2) inside the central 50 % interval of q; cover_90 alike
    gain_x      drop in cross-entropy against N(f(x), s^2) when the network is told x*;
    gain_f      ... f*;  gain_both  ... both: the log-likelihood that the hint is worth.

Each is a mean over queries, then over datasets; the error of the excess is the standard deviation
between datasets / sqrt(datasets). Queries placed by looking at x* are left out throughout.

Where a prior has functions with next to no noise, excess and coverage are on exact draws
(`amortes.oracles.exact_tasks`) and gains, which need an optimum, on paths.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from amortes.files import AnyPath
from amortes.nets.base import Network
from amortes.nets.distributions import Predictive
from amortes.oracles.exact_tasks import exact_task
from amortes.oracles.smc import PosteriorDraws, SMCConfig, hyper_posterior
from amortes.oracles.store import Entry, Store, rounded
from amortes.prior.gp import GPPrior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.random import generator
from amortes.training.distributed import take_rows
from amortes.training.objectives import HINTS, hint_for, query_mean
from amortes.training.recipes import EVALUATION_SEED

DIMS = (1, 2, 4, 6, 12)
SIZES = (5, 20, 45, 100)
DATASETS = 32
# Of the fingerprints of a dataset; rounding on another machine is far below, another dataset above.
TOLERANCE = 1e-3
EASY_DIM, EASY_SIZE = 6, 45  # limits of the cells that have an average of their own
# Noise that hides the error of paths, d = 1, n = 45: with an sd of 5e-3 and more the truth was as
# likely as draws of the posterior, with 3e-4 and less 22 to 36 nats less (docs/log.md, 2026-11-20).
QUIET = 1e-3
MEANS = ("excess", "cover_50", "cover_90", "gain_x", "gain_f", "gain_both")

Cell = tuple[int, int]  # dimension d and number of observations n


@dataclass(frozen=True)
class ReferenceCell:
    """Tasks of one cell and the reference's cross-entropy on each of its b datasets."""

    task: TaskBatch
    cross_entropy: Tensor  # b
    paths: TaskBatch | None = None  # tasks with known optima, if `task` has none


def grid(prior: GPPrior) -> list[Cell]:
    """All cells whose dimension the prior covers."""
    dims = [d for d in DIMS if prior.min_dim <= d <= prior.max_dim]
    return [(d, n) for d in dims for n in SIZES]


def evaluation_task(prior: GPPrior, cell: Cell) -> TaskBatch:
    """The tasks of a cell: exact draws of a quiet prior, else noisy values of paths."""
    if quiet(prior, cell[0]):
        return exact_task(prior, EVALUATION_SEED, *cell, TaskConfig(batch_size=DATASETS))
    return path_task(prior, cell)


def path_task(prior: GPPrior, cell: Cell) -> TaskBatch:
    """The tasks of a cell, functions of which are paths with known optima."""
    config = TaskConfig(batch_size=DATASETS)
    return TaskStream(prior, EVALUATION_SEED, config).batch_of(0, *cell)


def quiet(prior: GPPrior, d: int) -> bool:
    """Whether a function in forty (two standard deviations) has less noise than `QUIET`."""
    return prior.noise_sd.transform(torch.tensor(-2.0), d).item() < QUIET


def smc_config(n: int) -> SMCConfig:
    """Budget for n observations: more particles where they are cheap and the posterior is wide.

    Measured: between independent runs, and for twice the particles, the reference of a dataset
    changes by 0.002 to 0.009 nats, the mean of a cell by 0.001 to 0.002. One core takes 6 minutes
    for all cells of `paper`, 7 for those of `robust`.
    """
    final = 16384 if n <= 5 else 8192 if n <= 20 else 4096 if n <= 45 else 2048
    return SMCConfig(particles=1024 if n <= 45 else 512, final_particles=final)


def reference_cell(prior: GPPrior, cell: Cell, datasets: int | None = None) -> ReferenceCell:
    """Compute the reference on the first `datasets` datasets of a cell; nothing is stored."""
    task = take_rows(evaluation_task(prior, cell), slice(datasets))
    rng = generator(EVALUATION_SEED, *cell)
    posterior = hyper_posterior(prior, task.X, task.y, rng, smc_config(cell[1]))
    variance = task.posterior_variance + task.noise_variance
    rows = []
    for i in range(len(task.X)):  # one by one: the mixtures have thousands of components
        one = PosteriorDraws(posterior.gp[torch.tensor([i])], posterior.z[i : i + 1])
        q = one.predict(task.Xq[i : i + 1])
        rows.append(q.cross_entropy(task.posterior_mean[i : i + 1], variance[i : i + 1]))
    return ReferenceCell(task, fair_mean(torch.cat(rows), task))


def references(
    prior: GPPrior,
    cells: Sequence[Cell],
    cache: AnyPath | None = None,
    on_cell: Callable[[Cell], object] = lambda cell: None,
    datasets: int | None = None,
) -> dict[Cell, ReferenceCell]:
    """The reference on the first `datasets` of all `cells`, computed where it is not stored yet.

    `on_cell` is called with each cell before work on it begins.
    """
    rows = slice(datasets)
    settings = {
        "seed": EVALUATION_SEED,
        "task": dataclasses.asdict(TaskConfig(batch_size=DATASETS)),
        "smc": {n: dataclasses.asdict(smc_config(n)) for n in SIZES},
    }
    store = Store("reference", prior, settings, cache)
    result = {}
    for cell in cells:
        on_cell(cell)
        task = take_rows(evaluation_task(prior, cell), rows)
        label = f"d={cell[0]} n={cell[1]}"
        entry = store.find(label, functools.partial(belongs, task))
        if entry is None:
            columns = fingerprint(task) | {
                "cross_entropy": reference_cell(prior, cell, len(task.X)).cross_entropy
            }
            entry = {name: rounded(column.tolist()) for name, column in columns.items()}
            store.put(label, entry)
        values = torch.tensor(entry["cross_entropy"], dtype=torch.float64)[rows]
        paths = take_rows(path_task(prior, cell), rows) if quiet(prior, cell[0]) else None
        result[cell] = ReferenceCell(task, values, paths)
    return result


def belongs(task: TaskBatch, entry: Entry) -> bool:
    """Whether a stored entry begins with these tasks, by their fingerprints."""
    for name, expected in fingerprint(task).items():
        found = torch.tensor(entry[name], dtype=torch.float64)[: len(expected)]
        if found.shape != expected.shape:
            return False
        if not torch.allclose(found, expected, rtol=0.0, atol=TOLERANCE):
            return False
    return True


def fingerprint(task: TaskBatch) -> dict[str, Tensor]:
    """Two numbers per dataset that tell it from another: each `b`."""
    variance = task.posterior_variance + task.noise_variance
    entropy = 0.5 * (2 * math.pi * math.e * variance).log()
    return {"entropy": fair_mean(entropy, task), "mean_y": task.y.mean(1)}


def fair_mean(values: Tensor, task: TaskBatch) -> Tensor:
    """Mean of `b x q` over the queries that were placed without looking at the optimum: `b`."""
    return query_mean(values, ~task.near_optimum)


@torch.no_grad()
def base_score(
    name: str, network: Network[Any], cell: Cell, reference: ReferenceCell, datasets: int
) -> dict[str, Any]:
    """Score a network on the first `datasets` datasets of a cell: a row of `evaluate base`."""
    task = take_rows(reference.task, slice(datasets))
    state = network.condition(task.X, task.y)
    q = network.predict(state, task.Xq)
    variance = task.posterior_variance + task.noise_variance
    cross_entropy = fair_mean(q.cross_entropy(task.posterior_mean, variance), task)
    excess = cross_entropy - reference.cross_entropy[:datasets]
    cover_50, cover_90 = (_coverage(q, task, level) for level in (0.5, 0.9))
    if reference.paths is not None:
        task = take_rows(reference.paths, slice(datasets))
        state = network.condition(task.X, task.y)
        q = network.predict(state, task.Xq)
    told = {hint: network.predict(state, task.Xq, hint_for(task, hint)) for hint in HINTS[1:]}
    gains = {h: _against_truth(q, task) - _against_truth(p, task) for h, p in told.items()}
    return {
        "network": name,
        "d": cell[0],
        "n": cell[1],
        "excess": excess.mean().item(),
        "error": (excess.std() / math.sqrt(len(excess))).item(),
        "cover_50": cover_50,
        "cover_90": cover_90,
    } | {f"gain_{hint}": gain.mean().item() for hint, gain in gains.items()}


def average(scores: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the cells of one network: the easy ones, if there are others too, and all."""
    easy = [s for s in scores if s["d"] <= EASY_DIM and s["n"] <= EASY_SIZE]
    groups = [(f"<={EASY_DIM}", f"<={EASY_SIZE}", easy)] * (0 < len(easy) < len(scores))
    rows = []
    for d, n, some in [*groups, ("all", "all", scores)]:
        means = {name: sum(score[name] for score in some) / len(some) for name in MEANS}
        # Cells are independent.
        error = math.sqrt(sum(score["error"] ** 2 for score in some)) / len(some)
        rows.append(some[0] | means | {"d": d, "n": n, "error": error})
    return rows


def _against_truth(q: Predictive, task: TaskBatch) -> Tensor:
    """Cross-entropy against y given the function itself, per dataset: `b`."""
    return fair_mean(q.cross_entropy(task.fq, task.noise_variance.expand_as(task.fq)), task)


def _coverage(q: Predictive, task: TaskBatch, level: float) -> float:
    """Share of the true predictive inside the central interval of q."""
    sd = (task.posterior_variance + task.noise_variance).sqrt()
    low, high = (
        torch.special.ndtr((q.icdf(torch.full_like(sd, p)) - task.posterior_mean) / sd)
        for p in (0.5 - level / 2, 0.5 + level / 2)
    )
    return fair_mean(high - low, task).mean().item()
