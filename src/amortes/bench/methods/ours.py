"""Our own: `amortes.Optimizer`, asked and told.

Its first results are those that all methods begin with, so it has no initial design of its own.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from amortes.bench.methods.steps import timed_step
from amortes.bench.protocol import Problem, Step
from amortes.errors import FileError
from amortes.files import sha256
from amortes.nets.base import GAINS, Network
from amortes.optimiser import Float, Optimizer, Space
from amortes.optimiser.trials import Trial
from amortes.pretrained import as_network, names, weights_path

DIGITS = 12  # of a digest: no two weights anybody makes agree in so many


class Ours:
    """An acquisition of a network: pes, mes, jes, ei, logei, or auto: the default policy."""

    def __init__(self, problem: Problem, seed: int, network: Network[Any], score: str) -> None:
        self.problem, self.names = problem, [f"x{k}" for k in range(problem.d)]
        pool = None if problem.pool is None else [self._config(x) for x in problem.pool]
        self.optimizer = Optimizer(
            Space({name: Float(0.0, 1.0) for name in self.names}, pool=pool),
            goal="maximize",
            acquisition=score,
            seed=seed,
            initial=1,
            network=network,
        )
        self._asked: Trial | None = None
        self._told = 0

    def step(self, X: Tensor, y: Tensor) -> Step:
        """Tell what is new of X, `n x d`, and y, `n`; ask, and recommend."""
        for x, value in zip(X[self._told :], y[self._told :].tolist(), strict=True):
            self.optimizer.tell(self._asked or self._config(x), value)
            self._asked = None
        self._told = len(X)
        # A prediction needs the fit, which is kept for what follows.
        return timed_step(
            lambda: self.optimizer.predict(self._config(X[-1])),
            lambda _: self._ask(),
            lambda _: (
                X[y.argmax()]
                if self.problem.best_is_seen
                else self._point(self.optimizer.recommend().config)
            ),
        )

    def _ask(self) -> Tensor:
        self._asked = self.optimizer.ask()
        return self._point(self._asked.config)

    def _config(self, x: Tensor) -> dict[str, float]:
        return dict(zip(self.names, x.tolist(), strict=True))

    def _point(self, config: dict[str, Any]) -> Tensor:
        return torch.tensor([config[name] for name in self.names], dtype=torch.float64)


class OursFactory:
    """Makes runs with one network, loaded when the first of them is made."""

    def __init__(self, score: str, weights: str) -> None:
        """Take `weights`, the name of a pretrained network or the path of its file."""
        self.score, self.weights = score, weights

    def __call__(self, problem: Problem, seed: int) -> Ours:
        """One run."""
        return Ours(problem, seed, self._network, self.score)

    @cached_property
    def digest(self) -> str:
        """The start of the SHA-256 of the weights file, which may change while its name stays.

        A file that has no network, or not the gains that are asked for, is an error.
        """
        file = weights_path(self.weights) if self.weights in names() else Path(self.weights)
        if not file.is_file():
            raise FileError(
                f"{self.weights} does not exist; the weights of a method are a file, or one of "
                f"{', '.join(names())}."
            )
        _ = self._network
        return sha256(file)[:DIGITS]

    @cached_property
    def _network(self) -> Network[Any]:
        return as_network(self.weights, gains=self.score in GAINS)
