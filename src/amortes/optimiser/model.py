"""The network fitted to a ledger of trials, and the search of the space for its best scores."""

import copy
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from amortes.acquisition import Fitted, Found, SearchConfig, maximise, maximise_pool
from amortes.acquisition.output_warp import fit_warped
from amortes.acquisition.policy import automatic, log_belief, recommended
from amortes.acquisition.search import TO_THE_TOP
from amortes.nets.base import Network
from amortes.optimiser.design import Fixed, agreeing, domain, sample
from amortes.optimiser.trials import Ledger
from amortes.optimiser.weights import Weight, success_weight, weigh
from amortes.random import generator
from amortes.threads import single_thread

ACQUISITIONS = ("auto", "pes", "mes", "jes", "ei", "logei")
"""Scores that are gains, so that the chance of success and the cost can weigh them; `auto` is one
of
them, see `Model.acquisition`."""
AROUND = 8
"""Best points known from which the search starts."""
ENOUGH = 1024
"""Random configs among which it looks for allowed ones, if it knows some already."""


class Model:
    """What the results so far, the trials of a ledger that are done, say about its space."""

    def __init__(self, network: Network[Any], ledger: Ledger, *, maximise: bool) -> None:
        self.space = ledger.space
        X, y = ledger.points("done"), ledger.values()
        self.fitted = fit_warped(network, X, y, maximise=maximise)
        self._success = success_weight(network, ledger)
        self._told = len(ledger.having("done", "failed"))

    def with_pending(self, X_pending: Tensor) -> Self:
        """The same with trials under way at these points, `p x d`."""
        other = copy.copy(self)
        other.__dict__.pop("_kriging_believer", None)
        other.fitted = self.fitted.with_pending(X_pending)
        return other

    def acquisition(self, name: str) -> str:
        """The name, or for `auto` that of the acquisition which suits the results so far.

        Where evaluations may fail, that is improvement in any case: the optimum that entropy
        search asks about may not be allowed.
        """
        if name != "auto":
            return name
        return automatic(self.fitted) if self._success is None else "logei"

    def gain(self, name: str, cost: Weight | None = None) -> Callable[[Tensor], Tensor]:
        """The gain of evaluating points, `m x d -> m`, weighed by chance of success and cost."""
        name = self.acquisition(name)
        weights = self._weights(cost)
        fitted = self._kriging_believer if name in ("ei", "logei") else self.fitted

        def score(X: Tensor) -> Tensor:
            gain = fitted.score(name, X)
            for weight in weights:
                gain = weigh(gain, weight(X), logarithmic=name == "logei")
            return gain

        return score

    def worth(self, name: str, cost: Weight | None = None) -> Callable[[Tensor], Tensor]:
        """What suggestions maximise, `m x d -> m`: the gain; for `auto` with `policy.log_belief`.

        Of a finite space all points count the same: its faces are no more uncertain than the rest.
        """
        gain = self.gain(name, cost)
        if name != "auto" or self.space.points is not None:
            return gain
        logarithmic = self.acquisition(name) == "logei"
        return lambda X: weigh(gain(X), log_belief(X, self._told), logarithmic=logarithmic)

    @torch.no_grad()
    def expected_improvement(self, X: Tensor) -> Tensor:
        """Of the objective at points `m x d`, in its units, weighed by chance of success: `m`."""
        improvement = self.fitted.expected_improvement(X)
        return improvement if self._success is None else improvement * self._success(X).exp()

    def value(self, X: Tensor) -> Tensor:
        """Expected utility of points `m x d`: `m`.

        Where a failure is likelier than not, it counts as the worst result so far. Elsewhere the
        chance does not matter: it is known too roughly to weigh small differences.
        """
        mean = self.fitted.score("mean", X)
        if self._success is None:
            return mean
        chance = self._success(X).exp()
        return torch.where(chance > 0.5, mean, self._worst + chance * (mean - self._worst))

    def recommended(self, seed: int) -> Tensor:
        """The point to use in the end, `d`; see `policy.recommended`."""
        found = self.search(self.value, seed=seed, config=TO_THE_TOP)
        return recommended(self.fitted, found.x)

    def _weights(self, cost: Weight | None) -> list[Weight]:
        return [weight for weight in (self._success, cost) if weight is not None]

    @cached_property
    def _kriging_believer(self) -> Fitted:
        return self.fitted.kriging_believer()

    @cached_property
    def _worst(self) -> float:
        return float(self.fitted.units.to_network(self.fitted.y).min())

    @single_thread()
    def search(
        self,
        score: Callable[[Tensor], Tensor],
        *,
        seed: int,
        exclude: Tensor | None = None,
        fixed: Fixed | None = None,
        plain: bool = False,
        cost: Weight | None = None,
        config: SearchConfig | None = None,
    ) -> Found:
        """The point of the space with the highest score; none of `exclude`, if it can be.

        `fixed` are coordinates, by number, that the point is to have. A `plain` score goes by what
        is expected of a point and how little is known of it, weighed by success and `cost`.
        """
        space = self.space
        if space.points is not None:
            return maximise_pool(
                score,
                agreeing(space.points, fixed or {}),
                exclude=exclude,
                rough=self.fitted.rough_moments,
                weights=self._weights(cost),
            )
        around = self.fitted.best_points(AROUND)
        if space.constraints:
            # The search may not find the few points that are left of a much constrained space.
            # Calls of users' functions take time: a few draws do if points are known already.
            known = bool(space.functions) and not fixed and bool(space.feasible(around).any())
            draws = ENOUGH if known else math.inf
            more = sample(space, AROUND, generator(seed), fixed, draws=draws)
            around = torch.cat([around, more])

        def allowed(X: Tensor) -> Tensor:
            feasible = space.feasible(X)
            none = 0.0 * X.sum(-1) - torch.inf
            # Others are not even looked at: a cost function may not be made for them.
            return none.masked_scatter(feasible, score(X[feasible])) if feasible.any() else none

        plain = plain and not self._weights(cost) and not space.constraints
        # The search itself knows the constraints that are linear in the cube, to follow them.
        return maximise(
            allowed if space.constraints else score,
            domain(space, fixed),
            seed=seed,
            around=around,
            exclude=exclude,
            scale=self.fitted.lengthscale,
            rough=self.fitted.rough_moments if plain else None,
            config=config,
        )
