"""Training tasks: datasets drawn from the prior, with everything a network may learn from.

A batch is a pure function of (prior, configuration, seed, step), bit for bit, in any process and
with any number of workers, so a run that resumes at step s sees exactly what it would have seen.
"""

import math
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from amortes.errors import ConfigError, require_least
from amortes.prior.gp import GPPrior, Hyperparameters
from amortes.prior.newton import Optimum, maximise_paths
from amortes.prior.paths import Paths
from amortes.prior.posterior import exact_posterior
from amortes.prior.traces import TraceConfig, Tracer
from amortes.random import derive_seeds, generator
from amortes.threads import single_thread

MAX_CONTEXT = 200
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """Shape of the batches. Defaults are the paper's, except for the number of queries."""

    batch_size: int = 100
    num_queries: int = 50  # none: contexts only, whose functions are not maximised
    min_context: int = 1
    max_context: int = 49
    # n = min + (max - min) u^skew: 1 is uniform, larger values favour small datasets.
    context_skew: float = 1.0
    # P(d) proportional to d^-dim_decay: 0 is uniform, larger values favour low dimensions.
    dim_decay: float = 0.0
    trace: TraceConfig = TraceConfig()

    def __post_init__(self) -> None:
        require_least(self, batch_size=1, num_queries=0, min_context=1)
        if not self.min_context <= self.max_context <= MAX_CONTEXT:
            raise ConfigError(
                f"max_context: must be in {self.min_context}..{MAX_CONTEXT}, "
                f"not {self.max_context}."
            )
        if not (self.context_skew > 0 and math.isfinite(self.context_skew)):
            raise ConfigError(f"context_skew: must be positive, not {self.context_skew}.")
        if not math.isfinite(self.dim_decay):
            raise ConfigError(f"dim_decay: must be finite, not {self.dim_decay}.")


@dataclass(frozen=True)
class TaskBatch:
    """b datasets of n points in d dimensions with q queries each; all float64."""

    X: Tensor  # b x n x d, in the unit cube
    y: Tensor  # b x n, path plus noise
    Xq: Tensor  # b x q x d
    # b x q, bool: the query was placed by looking at x*. Its place then says something about x*,
    # so it is no fair test of a network that is not told x* (docs/log.md, 2026-11-15).
    near_optimum: Tensor
    fq: Tensor  # b x q, noise-free values at the queries
    optimum: Optimum  # of the path on the cube: x `b x d`, f `b`
    hyper: Hyperparameters  # the true ones, batch shape b
    posterior_mean: Tensor  # b x q, exact posterior of f at the queries under `hyper`
    posterior_variance: Tensor  # b x q

    @property
    def noise_variance(self) -> Tensor:
        """Variance of an observation about f: `b x 1`."""
        return self.hyper.noise_sd.square()[:, None]

    def __len__(self) -> int:
        """The number b of datasets."""
        return len(self.X)

    def __str__(self) -> str:
        """What sort of datasets these are, for messages."""
        return f"d={self.X.shape[2]}, n={self.X.shape[1]}"


class PathSource(Protocol):
    """Where paths whose maxima are known come from, such as a corpus on disk."""

    def require(self, prior: GPPrior) -> None:
        """Raise `ConfigError` unless there are paths of the prior, in all of its dimensions."""

    def draw_paths(
        self, d: int, count: int, rng: torch.Generator
    ) -> tuple[Hyperparameters, Paths, Optimum]:
        """`count` random paths of dimension `d`."""


class TaskStream(Dataset[TaskBatch]):
    """An endless, indexable stream of task batches.

    `stream.batch(step)` computes one batch; `stream.batches(steps, workers)` yields them in
    order, prefetched by worker processes. Paths come from `corpus` if there is one, else they are
    drawn and maximised on the fly.
    """

    def __init__(
        self,
        prior: GPPrior,
        seed: int,
        config: TaskConfig | None = None,
        corpus: PathSource | None = None,
    ) -> None:
        self.prior, self.seed, self.corpus = prior, seed, corpus
        self.config = config or TaskConfig()
        self.dims = list(range(prior.min_dim, prior.max_dim + 1))
        if corpus is not None:
            corpus.require(prior)

    def batch(self, step: int) -> TaskBatch:
        """Batch number `step`, whose dimension and context size are drawn from the step too."""
        rng = generator(self.seed, step)
        weights = torch.tensor([d**-self.config.dim_decay for d in self.dims], dtype=torch.float32)
        d = self.dims[int(torch.multinomial(weights, 1, generator=rng))]
        low, high = self.config.min_context, self.config.max_context
        u = float(torch.rand((), generator=rng, dtype=torch.float32))
        n = low + int((high - low + 1) * u**self.config.context_skew)
        return self.batch_of(step, d, min(n, high))

    def batch_of(self, step: int, d: int, n: int) -> TaskBatch:
        """Batch number `step` with given dimension and context size, for evaluation grids."""
        self.prior.check_dim(d)
        with single_thread():
            rng = generator(self.seed, step, d, n)
            hyper, paths, optimum = self._paths(step, d, n, rng)
            return self._task(n, hyper, paths, optimum, rng)

    def __getitem__(self, step: int) -> TaskBatch:
        return self.batch(step)

    def batches(self, steps: range, workers: int = 0) -> Iterator[TaskBatch]:
        """The batches of these steps in order, computed ahead by `workers` processes if any.

        Workers ignore Ctrl-C and SIGTERM, which reach them too: whoever takes the batches decides.
        """
        yield from in_order(self, steps, workers)

    def _paths(
        self, step: int, d: int, n: int, rng: torch.Generator
    ) -> tuple[Hyperparameters, Paths, Optimum]:
        b = self.config.batch_size
        if self.corpus is not None:
            return self.corpus.draw_paths(d, b, rng)
        seeds = derive_seeds(self.seed, step, d, n, 1, count=2 * b)
        hyper = self.prior.sample(seeds[:b], d)
        paths = Paths.sample(self.prior.kernel, hyper, seeds[b:])
        optimum = maximise_paths(paths) if self.config.num_queries else _no_optimum(paths)
        return hyper, paths, optimum

    def _task(
        self, n: int, hyper: Hyperparameters, paths: Paths, optimum: Optimum, rng: torch.Generator
    ) -> TaskBatch:
        total = n + self.config.num_queries
        tracer = Tracer(paths.b, paths.d, self.config.trace, rng)
        noise_sd = hyper.noise_sd.to(paths.dtype)[:, None]

        def observe(x: Tensor) -> Tensor:
            return paths(x) + noise_sd * torch.randn(paths.b, 1, generator=rng, dtype=paths.dtype)

        X, y = tracer.context(n, total, observe)
        if not self.config.num_queries:
            empty = X.new_empty(paths.b, 0, dtype=torch.float64)
            none, points = empty.bool(), X[:, :0].double()
            nowhere = Optimum(optimum.x.double(), optimum.f.double())
            return TaskBatch(
                X.double(), y.double(), points, none, empty, nowhere, hyper, empty, empty
            )
        Xq, near_optimum = tracer.queries(self.config.num_queries, total, X, optimum.x)
        # All values in one evaluation, so that rounding cannot lift one of them above the maximum;
        # for the rare path where a point of the task beats the search, that point is the maximum.
        points = torch.cat([optimum.x[:, None], X, Xq], dim=1)
        values = paths(points)
        f_star, best = values.max(dim=1)
        x_star = points[torch.arange(paths.b), best]
        X64, y64, Xq64 = X.double(), y.double(), Xq.double()
        mean, variance = exact_posterior(self.prior.kernel, hyper, X64, y64, Xq64)
        return TaskBatch(
            X=X64,
            y=y64,
            Xq=Xq64,
            near_optimum=near_optimum,
            fq=values[:, 1 + n :].double(),
            optimum=Optimum(x_star.double(), f_star.double()),
            hyper=hyper,
            posterior_mean=mean,
            posterior_variance=variance,
        )


def _no_optimum(paths: Paths) -> Optimum:
    nowhere = torch.full((paths.b, paths.d), math.nan, dtype=paths.dtype)
    return Optimum(nowhere, nowhere[:, 0])


def in_order(
    stream: Dataset[T], steps: range, workers: int = 0, ahead: int | None = None
) -> Iterator[T]:
    """Items of a stream, of which each of `workers` processes makes `ahead`, if there are any."""
    loader = DataLoader(
        stream,
        batch_size=None,
        sampler=steps,
        num_workers=workers,
        prefetch_factor=ahead if workers else None,
        generator=torch.Generator(),  # unused, but else it takes numbers from the global one
        multiprocessing_context="forkserver" if workers else None,
        worker_init_fn=_ignore_signals,
    )
    yield from loader


def _ignore_signals(worker: int) -> None:
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, signal.SIG_IGN)
