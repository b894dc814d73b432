"""Optuna's samplers by ask and tell, with their default settings, on the unit cube.

At each step all evaluations so far are told to a new study, which is then asked for one trial.
Needs the extras `optuna` and `botorch`.
"""

import warnings

import optuna
import torch
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler, GPSampler, TPESampler
from torch import Tensor

from amortes.bench.methods.random_search import WithoutModel
from amortes.bench.protocol import Problem


class OptunaMethod(WithoutModel):
    """One run with the sampler tpe or gp; no state is kept between steps."""

    def __init__(self, problem: Problem, seed: int, sampler: str) -> None:
        super().__init__(problem, seed)
        self.sampler = sampler
        self.space: dict[str, BaseDistribution] = {
            f"x{k}": FloatDistribution(0.0, 1.0) for k in range(problem.d)
        }

    def _tell(self, X: Tensor, y: Tensor, seed: int) -> None:
        self.begin(seed)
        self.add(X, y)

    def begin(self, seed: int) -> None:
        """A study without trials."""
        sampler: BaseSampler
        if self.sampler == "tpe":
            sampler = TPESampler(seed=seed)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                sampler = GPSampler(seed=seed)
        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            self.study = optuna.create_study(direction="maximize", sampler=sampler)
        finally:
            optuna.logging.set_verbosity(verbosity)

    def add(self, X: Tensor, y: Tensor) -> None:
        """Trials with results y, `n`, at X, `n x d`."""
        self.study.add_trials(
            [
                optuna.trial.create_trial(
                    params=dict(zip(self.space, x, strict=True)),
                    distributions=self.space,
                    value=value,
                )
                for x, value in zip(X.tolist(), y.tolist(), strict=True)
            ]
        )

    def _ask(self, X: Tensor, y: Tensor, seed: int) -> Tensor:
        params = self.study.ask(self.space).params
        x = torch.tensor([params[name] for name in self.space], dtype=torch.float64)
        return self._nearest(x, X)
