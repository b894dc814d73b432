"""A problem and methods that are simple enough to know what must come out."""

import os
import time
from pathlib import Path

import torch
from torch import Tensor

from amortes.bench.protocol import Method, MethodFactory, Problem, Step
from amortes.errors import ConfigError, FileError
from amortes.random import generator


class Bowl(Problem):
    """-|x - 1/4|^2; name `bowl<d>`."""

    best: float | None = 0.0

    def __init__(self, name: str = "bowl2", noise_sd: float = 0.1) -> None:
        self.name = name
        self.d = int(name.removeprefix("bowl"))
        self.noise_sd = noise_sd

    def value(self, X: Tensor) -> Tensor:
        return -(X - 0.25).square().sum(-1)


class Points(Problem):
    """A pool whose values are the first coordinates."""

    name, d, best = "points", 2, 1.0
    pool = torch.linspace(0.0, 1.0, 22, dtype=torch.float64).reshape(11, 2).flip(0)

    def value(self, X: Tensor) -> Tensor:
        assert (X[:, None] == self.pool).all(-1).any(-1).all()
        return X[:, 0]


class RandomSearch:
    """Uniform points; recommends the best observation. Takes no time, or so it says."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.generator = generator(seed)

    def step(self, X: Tensor, y: Tensor) -> Step:
        x = torch.rand(X.shape[1], generator=self.generator, dtype=torch.float64)
        if self.problem.pool is not None:
            x = self.problem.pool[int(x[0] * len(self.problem.pool))]
        return Step(
            x=x,
            recommended=X[y.argmax()],
            fit_seconds=0.0,
            search_seconds=0.0,
            recommend_seconds=0.0,
        )


class Slow(RandomSearch):
    """Sleeps, so that there is time to kill it."""

    def step(self, X: Tensor, y: Tensor) -> Step:
        time.sleep(0.05)
        return super().step(X, y)


class Failing(RandomSearch):
    """Fails after the third observation, as long as a file says so."""

    def step(self, X: Tensor, y: Tensor) -> Step:
        if len(X) == 3 and Path(os.environ["AMORTES_TEST_FAIL"]).exists():
            raise ZeroDivisionError("on purpose")
        return super().step(X, y)


KINDS: dict[str, type[RandomSearch]] = {"random": RandomSearch, "slow": Slow, "failing": Failing}


class FakeFactory:
    """Makes methods; those called slow have weights, which the environment tells."""

    def __init__(self, kind: str, weights: str) -> None:
        self.kind, self.weights = kind, weights

    @property
    def digest(self) -> str:
        if self.weights:
            raise FileError(f"no {self.weights}")
        return os.environ.get("AMORTES_TEST_WEIGHTS", "") if self.kind == "slow" else ""

    def __call__(self, problem: Problem, seed: int) -> Method:
        return KINDS[self.kind](problem, seed)


def fake_method(name: str) -> MethodFactory:
    kind, _, weights = name.partition("@")
    if kind not in KINDS:
        raise ConfigError(f"method: no {name!r}")

    return FakeFactory(kind, weights)
