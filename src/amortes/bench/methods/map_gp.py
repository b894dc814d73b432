"""A Gaussian process with the most probable hyperparameters: what most users of BoTorch have.

BoTorch 0.18's `SingleTaskGP` with its default priors (Hvarfner et al., Vanilla Bayesian
Optimization Performs Great in High Dimensions, ICML 2024): SE kernel without output scale,
l_k ~ LogNormal(sqrt 2 + log(d) / 2, sqrt 3) and at least 0.025, noise variance ~ LogNormal(-4, 1)
and at least 1e-4, on standardised y. Fitted by `fit_gpytorch_mll`.

map-logei   analytic LogEI over the best posterior mean at an observed point. With noise the best
            observation would be a lucky draw.
map-lognei  `qLogNoisyExpectedImprovement` over all observed points, for noise
botorch     what a careful user takes: map-lognei if there is noise, else map-logei
map-gibbon  `qLowerBoundMaxValueEntropy` with `SAMPLES` maxima (Gumbel approximation)
map-jes     `qJointEntropySearch` with `SAMPLES` optima from `get_optimal_samples`

All is BoTorch's: on the cube `optimize_acqf` with the paper's 128 raw samples and 10 restarts, in a
pool all points, in chunks. BoTorch draws from torch's global generator and warns about much that is
none of a benchmark's concern; both are put aside for the time being. Needs the extra `botorch`.
"""

import contextlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from botorch.acquisition import (
    AcquisitionFunction,
    LogExpectedImprovement,
    qLogNoisyExpectedImprovement,
    qLowerBoundMaxValueEntropy,
)
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.acquisition.utils import get_optimal_samples
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.sampling.pathwise.posterior_samplers import get_matheron_path_model
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes.acquisition import Score, evaluate
from amortes.acquisition.bench import RAW_SAMPLES, RESTARTS
from amortes.acquisition.units import Units
from amortes.bench.methods.steps import highest_unseen, recommend, timed_step
from amortes.bench.protocol import Problem, Step
from amortes.random import derive_seeds

GP = TypeVar("GP", bound=Model)

CANDIDATES = 1024
"""Points at which GIBBON thinks of the maximum value; of a pool, as many random ones."""
CHUNK, CHUNK_OF_MANY = 1024, 128
"""Points scored at once by one process, and by many: docs/log.md, "Points scored at once"."""
PATH_RESTARTS, BOTORCH_PATH_RESTARTS = 8, 20
"""Starts per sampled function: ours, and BoTorch's, which took 3.4 times as long for 64 functions
(Hartmann-6, n = 20) and raised their maxima by 0.003 standard deviations of y on average."""
SAMPLES = 64


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let BoTorch draw from a generator of its own, and keep its warnings to itself."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        yield


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


class BoTorchMethod(ABC, Generic[GP]):
    """One run of a method that fits a model of BoTorch to all data at each step."""

    chunk = CHUNK_OF_MANY

    def __init__(self, problem: Problem, seed: int, acquisition: str) -> None:
        self.problem, self.d, self.pool, self.seed = problem, problem.d, problem.pool, seed
        self.acquisition = acquisition

    def step(self, X: Tensor, y: Tensor) -> Step:
        """Fit, search and recommend, given X, `n x d`, and y, `n`; a function of them and n."""
        # BoTorch and JAX take seeds of 32 bits.
        seeds = [int(s >> np.uint64(33)) for s in derive_seeds(self.seed, len(X), count=3)]
        return timed_step(
            lambda: self.fit(X, y, seeds[0]),
            lambda model: self.search(model, X, seeds[1]),
            lambda model: recommend(self.problem, X, y, lambda: posterior_mean(model), seeds[2]),
        )

    @abstractmethod
    def fit(self, X: Tensor, y: Tensor, seed: int) -> GP:
        """The model of X, `n x d`, and y, `n`, which is standardised."""

    @abstractmethod
    def _acquisition(self, model: GP, X: Tensor) -> AcquisitionFunction: ...

    def search(self, model: GP, X: Tensor, seed: int) -> Tensor:
        """The point to evaluate next, `d`, after X; from a pool, one not among them."""
        with seeded(seed):
            acquisition = self._acquisition(model, X)
            if self.pool is not None:
                return highest_unseen(lambda Xq: self._scores(acquisition, Xq), self.pool, X)
            limits = {"init_batch_limit": self.chunk, "batch_limit": self.chunk}
            candidate, _ = optimize_acqf(
                *(acquisition, unit_bounds(self.d), 1, RESTARTS, RAW_SAMPLES), options=limits
            )
            x: Tensor = candidate[0].detach()
            return x

    def _scores(self, acquisition: AcquisitionFunction, Xq: Tensor) -> Tensor:
        return torch.cat([acquisition(part[:, None]) for part in torch.split(Xq, self.chunk)])


class MapGP(BoTorchMethod[SingleTaskGP]):
    """One run with the acquisition logei, lognei, gibbon or jes."""

    def __init__(self, problem: Problem, seed: int, acquisition: str) -> None:
        super().__init__(problem, seed, acquisition)
        # JES conditions a process on each of its optima.
        self.chunk = CHUNK_OF_MANY if acquisition == "jes" else CHUNK

    def fit(self, X: Tensor, y: Tensor, seed: int) -> SingleTaskGP:
        """Maximise the marginal likelihood times the priors."""
        return fit_map(X, y, seed)

    def _acquisition(self, model: SingleTaskGP, X: Tensor) -> AcquisitionFunction:
        if self.acquisition == "logei":
            return LogExpectedImprovement(model, evaluate(posterior_mean(model), X).max())
        if self.acquisition == "lognei":
            return qLogNoisyExpectedImprovement(model, X_baseline=X, prune_baseline=True)
        if self.acquisition == "gibbon":
            points = candidates(self.d, self.pool)
            return qLowerBoundMaxValueEntropy(model, points, num_mv_samples=SAMPLES)
        return qJointEntropySearch(model, *optima(model, self.d, self.pool, SAMPLES))


def careful(problem: Problem, seed: int) -> MapGP:
    """What a careful user of BoTorch takes: an acquisition for noise if there is any."""
    return MapGP(problem, seed, "lognei" if problem.noise_sd else "logei")


def fit_map(X: Tensor, y: Tensor, seed: int) -> SingleTaskGP:
    """The process fitted to X, `n x d`, and y, `n`, which is standardised."""
    with seeded(seed):
        z = Units.of(y, maximise=True).to_network(y)
        model = SingleTaskGP(X, z[:, None], outcome_transform=None)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        # Acquisition functions are climbed in x; no graph back to hyperparameters is of use.
        return model.requires_grad_(False)


def posterior_mean(model: Model) -> Score:
    """The posterior mean of standardised y, `m x d -> m`; of an ensemble, that of the mixture."""

    def mean(Xq: Tensor) -> Tensor:
        posterior = model.posterior(Xq[:, None])
        values: Tensor = getattr(posterior, "mixture_mean", posterior.mean)
        return values.flatten()

    return mean
