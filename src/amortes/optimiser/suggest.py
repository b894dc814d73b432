"""The network fitted to a ledger of trials: what to evaluate next, and what to use in the end.

1. Until there are `initial` results, failures or trials under way, and until there is any result
   at all: the next unused point of a scrambled Sobol sequence.
2. Then the maximiser of the acquisition of the network fitted to all results, weighed by the
   chance of success and the cost. No config comes twice, until there is no other.

A pure function of the seed and the ledger, on one thread (`amortes.threads.on_cpu`). Fits are kept
until the ledger changes.
"""

import functools
import logging
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from amortes.acquisition import (
    TO_THE_TOP,
    USUAL,
    Fitted,
    Found,
    Score,
    SearchConfig,
    maximise,
    maximise_pool,
    with_gradient,
)
from amortes.acquisition.domain import is_among
from amortes.acquisition.fitted import fit_warped
from amortes.acquisition.policy import LogBelief, automatic, recommended, worth_using
from amortes.acquisition.units import milestones
from amortes.errors import ConfigError, DataError, require_int, shown
from amortes.nets.base import Network
from amortes.optimiser.design import Fixed, agreeing, sample, sobol_points
from amortes.optimiser.gain_weights import (
    Weight,
    known_cost_weight,
    learned_cost_weight,
    success_weight,
)
from amortes.optimiser.limits import departures, warn
from amortes.optimiser.space import Config
from amortes.optimiser.state import fingerprint
from amortes.optimiser.trials import Ledger
from amortes.random import derive_seeds, generator

LOG = logging.getLogger(__name__)
T = TypeVar("T")
ACQUISITIONS = ("auto", "pes", "mes", "jes", "ei", "logei")
"""Scores that are gains, so that the chance of success and the cost can weigh them; `auto` is one
of them, see `Suggester.current`."""
MOST_INITIAL = 10
AROUND = 8
"""Best points known from which the search starts."""
ENOUGH = 1024
"""Random configs among which it looks for allowed ones, if it knows some already."""


class Suggester:
    """Chooses configs for one ledger; says once what its user should know.

    initial: default one more than coordinates, but no more than `MOST_INITIAL`.
    partial: evaluations depend on more than the config, such as parameters outside the space; the
        same config may come again then.
    warned: kinds of warnings that have been said; shared, and added to.
    """

    def __init__(
        self,
        network: Network[Any],
        ledger: Ledger,
        *,
        maximise: bool,
        acquisition: str,
        seed: int,
        initial: int | None,
        cost: Callable[[Config], float] | None,
        partial: bool = False,
        warned: set[str] | None = None,
    ) -> None:
        check_acquisition(acquisition)
        if initial is None:
            initial = min(ledger.space.d + 1, MOST_INITIAL)
        seed, initial = require_int("seed", seed, 0), require_int("initial", initial, 1)
        if cost is not None and not callable(cost):
            raise ConfigError(f"cost: must be a function of the config, not {shown(cost)}.")
        self.network, self.ledger, self.space = network, ledger, ledger.space
        self.maximise, self.acquisition, self.seed = maximise, acquisition, seed
        self.initial, self.cost, self.partial = initial, cost, partial
        self._kept: dict[str, tuple[Hashable, Any]] = {}  # fits, and what they depend on
        self._fits: list[Fitted] = []  # to the first results, and to all: see `fit`
        self._warned = set() if warned is None else warned

    def next(self, given: Mapping[str, Any] | None = None) -> Config:
        """The config to evaluate next, among those with the given values of some parameters."""
        fixed = self.space.coordinates(given or {})
        done = self.ledger.having("done")
        x = None
        if not done or len(self.ledger.having("done", "failed", "pending")) < self.initial:
            x = self._unused(fixed)
            if x is None and not done:
                self._warn_exhausted()
                x = sample(self.space, 1, generator(self.seed_for("repeat")), fixed)[0]
        return self.space.decode(self._most_valuable(fixed) if x is None else x)

    def recommend(self) -> Config:
        """The config to use in the end; see `policy.recommended`."""

        def find() -> Config:
            found = self.search(self.value(), seed=self.seed_for("recommend"), config=TO_THE_TOP)
            return self.space.decode(recommended(self.fitted(), found.x))

        return self._keep("recommend", find, len(self.ledger.trials))

    @property
    def has_recommended(self) -> bool:
        """Whether `recommend` has its answer already."""
        key, _ = self._kept.get("recommend", (None, None))
        return key == (self.ledger.changes, len(self.ledger.trials))

    def gains(self, X: Tensor) -> Tensor:
        """The gain of evaluating points, `m x d -> m`, without its logarithm."""
        with torch.no_grad():
            gains = self.gain()(X)
        return gains.exp() if self.current() == "logei" else gains

    def largest_improvement(self) -> float:
        """The largest expected improvement any point offers; in the user's units, costs aside."""
        fitted = self.fitted()
        score = Weighed(fitted, "logei", self._weights(cost=False))
        x = self.search(score, seed=self.seed_for("gain")).x[None]
        with torch.no_grad():
            improvement = fitted.expected_improvement(x)
            success = self._success()
            return float(improvement if success is None else improvement * success(x).exp())

    def fitted(self, *, pending: bool = False) -> Fitted:
        """The network fitted to the results so far; with trials under way, if `pending`."""
        if not self.ledger.having("done"):
            raise DataError("there is no result to learn from yet; tell one first.")
        fitted = self._keep("fit", lambda: self.fit(self.ledger))
        under_way = self.ledger.having("pending") if pending else []
        if not under_way:
            return fitted
        X, numbers = self.ledger.points_of(under_way), tuple(t.number for t in under_way)
        return self._keep("pending", lambda: fitted.with_pending(X), numbers)

    def fit(self, ledger: Ledger) -> Fitted:
        """The network fitted to the results of a ledger.

        Each begins with those to the first of them: see `units.milestones`.
        """
        X, y = ledger.points("done"), ledger.values()
        fitted, kept = None, []
        for count in milestones(len(y)) if self.network.has_evidence else [len(y)]:
            known = (f for f in self._fits if f.is_to(X[:count], y[:count]))
            fitted = next(known, None) or fit_warped(
                self.network, X[:count], y[:count], maximise=self.maximise, earlier=fitted
            )
            kept.append(fitted)
        assert fitted is not None
        self._fits = kept
        LOG.info("fitted to %d results", len(y))
        return fitted

    def current(self) -> str:
        """The acquisition; for `auto` the one that suits the results so far.

        Where evaluations may fail, that is improvement in any case: the optimum that entropy
        search asks about may not be allowed.
        """
        if self.acquisition != "auto":
            return self.acquisition
        return automatic(self.fitted(pending=True)) if self._success() is None else "logei"

    def gain(self, *more: Weight) -> Score:
        """The gain of evaluating points, `m x d -> m`, weighed by success, cost and `more`."""
        name, fitted = self.current(), self.fitted(pending=True)
        if name in ("ei", "logei"):
            fitted = self._keep("believer", fitted.kriging_believer, fitted)
        return Weighed(fitted, name, [*self._weights(), *more])

    def worth(self) -> Score:
        """What suggestions maximise, `m x d -> m`: the gain; for `auto` with a `policy.LogBelief`.

        Of a finite space all points count the same: its faces are no more uncertain than the rest.
        """
        if self.acquisition != "auto" or self.space.points is not None:
            return self.gain()
        told = len(self.ledger.having("done", "failed"))
        return self.gain(LogBelief(told))

    def value(self) -> Score:
        """What recommendations maximise, `m x d -> m`: expected utility, see `policy.worth_using`.

        Where a failure is likelier than not, it counts as the worst result so far. Elsewhere the
        chance does not matter: it is known too roughly to weigh small differences.
        """
        fitted, success = self.fitted(), self._success()
        worst = float(fitted.units.to_network(fitted.y).min())

        def score(X: Tensor) -> Tensor:
            mean = fitted.score("mean", X)
            if self.space.points is None:
                mean = worth_using(fitted, X, mean)
            if success is None:
                return mean
            chance = success(X).exp()
            return torch.where(chance > 0.5, mean, worst + chance * (mean - worst))

        return score

    def search(
        self,
        score: Score,
        *,
        seed: int,
        exclude: Tensor | None = None,
        fixed: Fixed | None = None,
        gain: bool = False,
        config: SearchConfig = USUAL,
    ) -> Found:
        """The point of the space with the highest score; none of `exclude`, if it can be.

        `fixed` are coordinates, by number, that the point is to have. A score that is a `gain`
        goes by what is expected of a point and how little is known of it, given the trials under
        way, weighed by success and cost.
        """
        space, fitted = self.space, self.fitted(pending=gain)
        weights = self._weights(cost=gain)
        if space.points is not None:
            return maximise_pool(
                score,
                agreeing(space.points, fixed or {}),
                exclude=exclude,
                rough=fitted.rough_moments,
                weights=weights,
            )
        around = fitted.best_points(AROUND)
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

        plain = gain and not weights and not space.constraints
        # The search itself knows the constraints that are linear in the cube, to follow them.
        return maximise(
            allowed if space.constraints else score,
            space.domain(fixed),
            seed=seed,
            around=around,
            exclude=exclude,
            scale=fitted.lengthscale,
            rough=fitted.rough_moments if plain else None,
            config=config,
        )

    def __getstate__(self) -> dict[str, Any]:
        # What was fitted is fitted again, and some of it is no data.
        return self.__dict__ | {"_kept": {}, "_fits": []}

    @functools.cached_property
    def fingerprint(self) -> str:
        """That of the network."""
        return fingerprint(self.network)

    def seed_for(self, purpose: str) -> int:
        """A seed that depends on the purpose and on how far the run has come."""
        key = (self.seed, len(self.ledger.trials), int.from_bytes(purpose.encode()[:8]))
        return int(derive_seeds(*key, count=1)[0]) >> 1

    def warn(self, kind: str, message: str) -> None:
        """Say something, the first time."""
        if kind not in self._warned:
            self._warned.add(kind)
            warn(message)

    def _unused(self, fixed: Fixed) -> Tensor | None:
        """The first point of the initial design that has not been used."""
        used = self.ledger.points("done", "failed", "pending")
        # By distance: the point of a decoded config is off by rounding.
        points = sobol_points(self.space, self.seed, fixed)
        return next((x for x in points if not bool(is_among(x[None], used))), None)

    def _most_valuable(self, fixed: Fixed) -> Tensor:
        """The point with these coordinates that is worth most."""
        for kind, message in departures(self.fitted(pending=True)):
            if not (self.partial and kind == "noise"):
                self.warn(kind, message)
        search = functools.partial(
            self.search, self.worth(), seed=self.seed_for("ask"), fixed=fixed, gain=True
        )
        if self.partial:
            return search().x
        # Where there is a continuum, a point close to one used serves as well as a repeat.
        found = search(exclude=self.ledger.points("done", "failed", "pending"))
        if not found.fresh:
            self._warn_exhausted()
            found = search(exclude=self.ledger.points("failed", "pending"))
        return found.x

    def _weights(self, *, cost: bool = True) -> Sequence[Weight]:
        """What gains are multiplied by."""
        weights = (self._success(), self._cost() if cost else None)
        return [weight for weight in weights if weight is not None]

    def _success(self) -> Weight | None:
        if not self.ledger.having("failed"):
            return None
        return self._keep("success", lambda: success_weight(self.network, self.ledger))

    def _cost(self) -> Weight | None:
        if self.cost is not None:
            return known_cost_weight(self.space, self.cost)
        X, costs = self.ledger.numbers("cost")
        if not len(costs):
            return None
        return self._keep("cost", lambda: learned_cost_weight(self.network, X, costs))

    def _keep(self, name: str, make: Callable[[], T], *more: Hashable) -> T:
        """What `make` returns; the same again until results, or `more`, have changed."""
        key = (self.ledger.changes, *more)
        if name not in self._kept or self._kept[name][0] != key:
            self._kept[name] = key, make()
        kept: T = self._kept[name][1]
        return kept

    def _warn_exhausted(self) -> None:
        if self.partial:
            return
        self.warn(
            "exhausted",
            "every config of the space has been tried, so suggestions now repeat configs. That "
            "helps only if the results are noisy.",
        )


@dataclass(frozen=True)
class Weighed:
    """The acquisition of that name, `m x d -> m`, times the weights; or its logarithm."""

    fitted: Fitted
    name: str
    weights: Sequence[Weight]

    def __call__(self, X: Tensor) -> Tensor:
        """At points `m x d`: `m`."""
        gain = self.fitted.score(self.name, X)
        for weight in self.weights:
            log_weight = weight(X)
            if self.name == "logei":
                gain = gain + log_weight
            else:
                # A learned gain may be slightly negative: a small weight must be no advantage then.
                gain = torch.where(gain > 0, gain * log_weight.exp(), gain * (-log_weight).exp())
        return gain

    def with_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The same and its gradient: `m` and `m x d`."""
        gain, slope = self.fitted.score_with_gradient(self.name, X)
        for weight in self.weights:
            log_weight, weight_slope = with_gradient(weight, X)
            if self.name == "logei":
                gain, slope = gain + log_weight, slope + weight_slope
            else:
                sign = torch.where(gain > 0, 1.0, -1.0).to(gain)
                factor = (sign * log_weight).exp()
                slope = factor[:, None] * (slope + (sign * gain)[:, None] * weight_slope)
                gain = factor * gain
        return gain, slope


def check_acquisition(name: str) -> None:
    """Raise `ConfigError` unless there is an acquisition of that name."""
    if not isinstance(name, str) or name not in ACQUISITIONS:
        raise ConfigError(
            f"acquisition: must be one of {', '.join(ACQUISITIONS)}, not {shown(name)}."
        )
