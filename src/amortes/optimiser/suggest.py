"""Which config to evaluate next, given a ledger of trials.

1. Until there are `initial` results, failures or trials under way, and until there is any result
   at all: the next unused point of a scrambled Sobol sequence.
2. Then the maximiser of the acquisition of the network fitted to all results, weighed by the
   chance of success and the cost. No config comes twice, until there is no other.

A pure function of the seed and the ledger.
"""

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from amortes.acquisition.pool import is_among
from amortes.errors import ConfigError, DataError, require_int, shown
from amortes.nets.base import Network
from amortes.optimiser.design import Fixed, sample, spread
from amortes.optimiser.limits import departures, warn
from amortes.optimiser.model import ACQUISITIONS, Model
from amortes.optimiser.space import Config
from amortes.optimiser.state import fingerprint
from amortes.optimiser.trials import Ledger
from amortes.optimiser.weights import Weight, known_cost_weight, learned_cost_weight
from amortes.random import derive_seeds, generator
from amortes.threads import single_thread

LOG = logging.getLogger(__name__)
MOST_INITIAL = 10


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
        self._models: dict[bool, tuple[tuple[int, ...], Model]] = {}
        self._cost_weight: tuple[int, Weight | None] | None = None
        self._warned = set() if warned is None else warned

    @single_thread()
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

    @single_thread()
    def model(self, *, pending: bool = False) -> Model:
        """The model of the results so far; fitted again only if they have changed."""
        if not self.ledger.having("done"):
            raise DataError("there is no result to learn from yet; tell one first.")
        under_way = self.ledger.having("pending") if pending else []
        key = (self.ledger.changes, *(trial.number for trial in under_way))
        kept = self._models.get(bool(under_way))
        if kept is None or kept[0] != key:
            if under_way:
                model = self.model().with_pending(self.ledger.points("pending"))
            else:
                model = Model(self.network, self.ledger, maximise=self.maximise)
                LOG.info("fitted to %d results", len(self.ledger.having("done")))
            self._models[bool(under_way)] = kept = (key, model)
        return kept[1]

    @single_thread()
    def gains(self, X: Tensor) -> Tensor:
        """The gain of evaluating points, `m x d -> m`, without its logarithm."""
        model = self.model(pending=True)
        with torch.no_grad():
            gains = model.gain(self.acquisition, self._weight_of_cost())(X)
        return gains.exp() if model.acquisition(self.acquisition) == "logei" else gains

    def __getstate__(self) -> dict[str, Any]:
        # What was fitted is fitted again, and some of it is no data.
        return self.__dict__ | {"_models": {}, "_cost_weight": None}

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
        points = spread(self.space, self.seed, fixed)
        return next((x for x in points if not bool(is_among(x[None], used))), None)

    def _most_valuable(self, fixed: Fixed) -> Tensor:
        """The point with these coordinates and the largest gain."""
        model = self.model(pending=True)
        for kind, message in departures(model.fitted):
            if not (self.partial and kind == "noise"):
                self.warn(kind, message)
        cost = self._weight_of_cost()
        search = functools.partial(
            model.search,
            model.worth(self.acquisition, cost),
            seed=self.seed_for("ask"),
            fixed=fixed,
            plain=True,
            cost=cost,
        )
        if self.partial:
            return search().x
        # Where there is a continuum, a point close to one used serves as well as a repeat.
        used = self.ledger.points("done", "failed", "pending")
        found = search(exclude=used)
        if not found.fresh:
            self._warn_exhausted()
            busy = self.ledger.points("failed", "pending")
            found = search(exclude=busy)
        return found.x

    def _weight_of_cost(self) -> Weight | None:
        """What divides gains by costs; learned again only if results have changed."""
        if self.cost is not None:
            return known_cost_weight(self.space, self.cost)
        if self._cost_weight is None or self._cost_weight[0] != self.ledger.changes:
            weight = learned_cost_weight(self.network, self.ledger)
            self._cost_weight = self.ledger.changes, weight
        return self._cost_weight[1]

    def _warn_exhausted(self) -> None:
        if self.partial:
            return
        self.warn(
            "exhausted",
            "every config of the space has been tried; from now on configs are repeated, which "
            "helps only if the results are noisy.",
        )


def check_acquisition(name: str) -> None:
    """Raise `ConfigError` unless there is an acquisition of that name."""
    if not isinstance(name, str) or name not in ACQUISITIONS:
        raise ConfigError(
            f"acquisition: must be one of {', '.join(ACQUISITIONS)}, not {shown(name)}."
        )
