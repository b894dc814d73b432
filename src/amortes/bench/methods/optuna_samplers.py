"""Optuna's samplers by ask and tell, with their default settings, on the unit cube.

At each step all evaluations so far are told to a new study, which is then asked for one trial. In a
pool the point nearest to what is asked for, of those not evaluated, is evaluated instead, and
that is what the study hears of: a categorical parameter for the index of the point would keep the
sampler from learning anything about points it has not seen.

Recommendations are those of random search: `amortes.bench.methods.random_search` says why.
Needs the extras `optuna` and `botorch`.
"""

import warnings

import numpy as np
import optuna
import torch
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler, GPSampler, TPESampler
from torch import Tensor

from amortes.bench.methods.model_based import highest_unseen, timed
from amortes.bench.methods.random_search import recommend_without_model
from amortes.bench.protocol import Problem, Step
from amortes.random import derive_seeds


class OptunaMethod:
    """One run with the sampler tpe or gp; no state is kept between steps."""

    def __init__(self, problem: Problem, seed: int, sampler: str) -> None:
        self.problem, self.pool, self.seed, self.sampler = problem, problem.pool, seed, sampler
        self.space: dict[str, BaseDistribution] = {
            f"x{k}": FloatDistribution(0.0, 1.0) for k in range(problem.d)
        }

    def step(self, X: Tensor, y: Tensor) -> Step:
        """The next point and the recommended one, given X, `n x d`, and y, `n`."""
        # NumPy's old generator takes 32 bits.
        seed = int(derive_seeds(self.seed, len(X), count=1)[0] >> np.uint64(32))
        study, fit_seconds = timed(lambda: self._study(X, y, seed))
        x, search_seconds = timed(lambda: self._ask(study, X))
        recommended, recommend_seconds = timed(
            lambda: recommend_without_model(self.problem, X, y, seed)
        )
        return Step(
            x=x,
            recommended=recommended,
            fit_seconds=fit_seconds,
            search_seconds=search_seconds,
            recommend_seconds=recommend_seconds,
        )

    def _study(self, X: Tensor, y: Tensor, seed: int) -> optuna.Study:
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
            study = optuna.create_study(direction="maximize", sampler=sampler)
        finally:
            optuna.logging.set_verbosity(verbosity)
        study.add_trials(
            [
                optuna.trial.create_trial(
                    params=dict(zip(self.space, x, strict=True)),
                    distributions=self.space,
                    value=value,
                )
                for x, value in zip(X.tolist(), y.tolist(), strict=True)
            ]
        )
        return study

    def _ask(self, study: optuna.Study, X: Tensor) -> Tensor:
        params = study.ask(self.space).params
        x = torch.tensor([params[name] for name in self.space], dtype=torch.float64)
        if self.pool is None:
            return x
        return highest_unseen(lambda Xq: -(Xq - x).norm(dim=1), self.pool, X)
