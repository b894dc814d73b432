"""Value reached against time: our search and BoTorch's `optimize_acqf`, on the same scores.

Datasets are drawn from the network's prior, with points such as an optimisation leaves. The
reference on each is the best value known: that of a search ten times as large, or of a measured
method where that is better still. What a method misses is measured in units of (reference - median
score of random points), so that 0 is perfect and 1 a random point, whatever the score.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from amortes.acquisition.climb import Score
from amortes.acquisition.domain import Domain
from amortes.acquisition.fitted import Fitted
from amortes.acquisition.search import SearchConfig, evaluate, maximise
from amortes.errors import MissingExtraError
from amortes.nets.base import Network
from amortes.prior.tasks import TaskConfig, TaskStream
from amortes.threads import single_thread

RAW_SAMPLES, RESTARTS = 128, 10  # of `optimize_acqf` in the paper
CENTRES = 8  # observed points perturbed by our search
REFERENCE = SearchConfig(
    num_global=2048, num_local=1024, starts=48, coarse_steps=15, survivors=24, fine_steps=25
)
Method = Callable[[Score, Fitted, int], float]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method on datasets of one size."""

    d: int
    n: int
    score: str
    method: str
    datasets: int
    ms: float  # of one core, median
    missed: float  # average; see the module
    worst: float
    within_1_percent: float  # share of the datasets


def compare(
    network: Network[Any], *, d: int, n: int, score: str, datasets: int, seed: int
) -> list[Row]:
    """A row for each method."""
    methods: dict[str, Method] = {"amortes": _ours, "optimize_acqf": optimize_acqf_method()}
    milliseconds: dict[str, list[float]] = {name: [] for name in methods}
    missed: dict[str, list[float]] = {name: [] for name in methods}
    with single_thread():
        for fitted in draw(network, d, n, datasets, seed):

            def value(X: Tensor, fitted: Fitted = fitted) -> Tensor:
                return fitted.score(score, X)

            domain = Domain.cube(d)
            random = evaluate(value, domain.sample(256, seed))  # also warms up
            found = {}
            for name, method in methods.items():
                begin = time.thread_time()
                found[name] = method(value, fitted, seed)
                milliseconds[name].append(1e3 * (time.thread_time() - begin))
            around = fitted.best_points(CENTRES)
            scale = fitted.lengthscale
            best = maximise(
                value, domain, seed=seed + 1, around=around, scale=scale, config=REFERENCE
            ).value
            best = max(best, *found.values())
            for name in methods:
                missed[name].append((best - found[name]) / (best - float(random.median())))
    return [
        Row(
            d=d,
            n=n,
            score=score,
            method=name,
            datasets=datasets,
            ms=float(torch.tensor(milliseconds[name]).median()),
            missed=sum(missed[name]) / datasets,
            worst=max(missed[name]),
            within_1_percent=sum(m <= 0.01 for m in missed[name]) / datasets,
        )
        for name in methods
    ]


def draw(network: Network[Any], d: int, n: int, count: int, seed: int) -> Iterator[Fitted]:
    """The network fitted to `count` datasets of its prior."""
    stream = TaskStream(network.prior, seed, TaskConfig(batch_size=1, num_queries=1))
    for i in range(count):
        task = stream.batch_of(i, d, n)
        yield Fitted(network, task.X[0], task.y[0])


def _ours(score: Score, fitted: Fitted, seed: int) -> float:
    return maximise(
        score,
        Domain.cube(fitted.d),
        seed=seed,
        around=fitted.best_points(CENTRES),
        scale=fitted.lengthscale,
        rough=fitted.rough_moments,
    ).value


def optimize_acqf_method() -> Method:
    """BoTorch's search with the paper's settings."""
    try:
        from botorch.acquisition import AcquisitionFunction
        from botorch.optim import optimize_acqf
    except ImportError as error:
        raise MissingExtraError(
            "comparing with optimize_acqf needs BoTorch: `pip install amortes[botorch]`."
        ) from error

    class Wrapped(AcquisitionFunction):  # type: ignore[misc]
        def __init__(self, score: Score) -> None:
            super().__init__(model=None)
            self.score = score

        def forward(self, X: Tensor) -> Tensor:
            return self.score(X.squeeze(-2))

    def method(score: Score, fitted: Fitted, seed: int) -> float:
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, fitted.d)
        # BoTorch draws from the global generator, and warns when its line search gives up.
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            torch.default_generator.manual_seed(seed)
            warnings.simplefilter("ignore")
            _, best = optimize_acqf(
                Wrapped(score), bounds, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES
            )
        return float(best)

    return method
