"""BoTorch's own search for the best point, with the paper's effort, as a function of a seed.

On the cube: `optimize_acqf` with 128 raw samples and 10 restarts. In a pool: all points, in chunks.
BoTorch draws from torch's global generator and warns about much that is none of a benchmark's
concern; both are put aside for the time being. Needs the extra `botorch`.
"""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.utils import get_optimal_samples
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.sampling.pathwise.posterior_samplers import get_matheron_path_model
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes.acquisition.bench import RAW_SAMPLES, RESTARTS
from amortes.bench.methods.model_based import highest_unseen, in_chunks

CANDIDATES = 1024
"""Points at which GIBBON thinks of the maximum value; of a pool, as many random ones."""
CHUNK, CHUNK_OF_MANY = 1024, 128
"""Points scored at once by one process, and by many: docs/log.md, "Points scored at once"."""
PATH_RESTARTS, BOTORCH_PATH_RESTARTS = 8, 20
"""Starts per sampled function: ours, and BoTorch's, which took 3.4 times as long for 64 functions
(Hartmann-6, n = 20) and raised their maxima by 0.003 standard deviations of y on average."""


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let BoTorch draw from a generator of its own, and keep its warnings to itself."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        yield


def best_candidate(
    acquisition: AcquisitionFunction, d: int, pool: Tensor | None, X: Tensor, chunk: int
) -> Tensor:
    """The point to evaluate next, `d`, after X, scoring at most `chunk` points at once."""
    if pool is not None:
        score = in_chunks(lambda Xq: acquisition(Xq[:, None]), chunk)
        return highest_unseen(score, pool, X)
    limits = {"init_batch_limit": chunk, "batch_limit": chunk}
    candidate, _ = optimize_acqf(
        acquisition,
        unit_bounds(d),
        q=1,
        num_restarts=RESTARTS,
        raw_samples=RAW_SAMPLES,
        options=limits,
    )
    x: Tensor = candidate[0].detach()
    return x


def candidates(d: int, pool: Tensor | None) -> Tensor:
    """`CANDIDATES` points spread over the cube, or some points of the pool."""
    if pool is not None:
        return pool[torch.randperm(len(pool))[:CANDIDATES]]
    sobol: Any = SobolEngine  # untyped in torch
    points: Tensor = sobol(d, scramble=True, seed=int(torch.randint(2**31, ()))).draw(
        CANDIDATES, dtype=torch.float64
    )
    return points


def optima(
    model: Model, d: int, pool: Tensor | None, count: int, restarts: int = PATH_RESTARTS
) -> tuple[Tensor, Tensor]:
    """Maximisers `count x d` and maxima `count x 1` of functions drawn from the posterior.

    From each of the k models of an ensemble: `count x k x d` and `count x k x 1`. In the cube by
    BoTorch's `get_optimal_samples`, from `restarts` starts; in a pool, by comparing its points.
    """
    if pool is None:
        x, f = get_optimal_samples(model, unit_bounds(d), count, num_restarts=restarts)
        return x.detach(), f.detach()
    paths = get_matheron_path_model(model, torch.Size([count]), ensemble_as_batch=True)
    with torch.no_grad():
        # count (x k) x m
        values = torch.cat(
            [paths(part).squeeze(-1) for part in torch.split(pool, CANDIDATES)], dim=-1
        )
    f, best = values.max(-1, keepdim=True)
    return pool[best.squeeze(-1)], f


def unit_bounds(d: int) -> Tensor:
    """The bounds of the unit cube, `2 x d`."""
    return torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, d)
