"""What a gain is multiplied by: the chance of success, and one over the cost.

Success. Failed trials are no data for the objective, but where evaluations fail there is nothing to
gain. The network, fitted to 1 for every success and 0 for every failure, gives the chance that a
point is on the side of the successes,

    p(x) = P(s(x) > 1/2 | successes, failures):

least-squares classification (Rasmussen & Williams, 2006, section 6.5). Failures that follow a
pattern rule a region out; a failure among successes counts as an accident. Where it is told by how
much a constraint is violated, the network, fitted to that, gives the chance that it is not:
P(v(x) <= 0).

Cost. Known as a function of the config, or learned from told costs: the network's median of the
cost at x given the logarithms of the costs seen (Snoek et al., NeurIPS 2012, "expected improvement
per second").
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from amortes.acquisition import Fitted
from amortes.errors import DataError
from amortes.nets.base import Network
from amortes.optimiser.space import Config, Space
from amortes.optimiser.trials import Ledger, positive

SMALLEST = 1e-300
"""Chances below this are this, so that they have logarithms."""

Weight = Callable[[Tensor], Tensor]
"""Logarithms of weights, `m`, of points `m x d`."""


def success_weight(network: Network[Any], ledger: Ledger) -> Weight:
    """The logarithm of the chance of success, of a ledger in which something has failed."""
    chances: list[Weight] = []
    X_done = ledger.points("done")
    # A violation that is told says more than that it is one.
    X_failed = ledger.points_of([t for t in ledger.having("failed") if not (t.violation or 0) > 0])
    if len(X_failed):
        succeeded = torch.cat([X_done.new_ones(len(X_done)), X_done.new_zeros(len(X_failed))])
        chances.append(_log_chance(network, torch.cat([X_done, X_failed]), succeeded, 0.5))
    X, violation = ledger.numbers("violation")
    if bool((violation > 0).any()):
        chances.append(_log_chance(network, X, -violation, 0.0))
    return lambda X: torch.stack([chance(X) for chance in chances]).sum(0)


def _log_chance(network: Network[Any], X: Tensor, values: Tensor, least: float) -> Weight:
    """The logarithm of the chance that a function with these values exceeds `least`."""
    fitted, bound = Fitted(network, X, values), torch.tensor(least, dtype=torch.float64)
    return lambda X: fitted.latent(X).probability_of_improvement(bound).clamp_min(SMALLEST).log()


def known_cost_weight(space: Space, cost: Callable[[Config], float]) -> Weight:
    """Minus the logarithm of a cost that is a function of the config; without gradient."""

    def weight(X: Tensor) -> Tensor:
        costs = []
        for x in space.project(X.detach()):
            config = space.decode(x)
            try:
                costs.append(positive(cost(config)))
            except DataError as error:
                raise DataError(
                    f"the cost function at {config} returned a bad value: {error}"
                ) from None
        return -torch.tensor(costs, dtype=X.dtype).log()

    return weight


def learned_cost_weight(network: Network[Any], X: Tensor, costs: Tensor) -> Weight:
    """Minus the logarithm of the cost, as learned from the costs, `n`, at points `n x d`."""
    fitted = Fitted(network, X, costs.log(), maximise=False)
    return lambda Xq: -fitted.latent(Xq).mean
