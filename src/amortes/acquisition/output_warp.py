"""The power transform of the results that explains them best, as part of the model.

Objectives are often skewed: a learning rate that is too large gives a loss of thousands, and next
to that all that is good looks the same. The model is that T(y) is a Gaussian process, for a power λ
between -1 and 3 (Snelson et al., "Warped Gaussian processes", NeurIPS 2003). λ is chosen by the
evidence of the data, all hyperparameters considered, with the Jacobian of T:

    log p(y | λ) = log p(T(y)) + sum log dT/dy.

The network compares all λ as it infers hyperparameters (`Network.condition_likeliest`), beginning
with the one by which independent values would be likeliest. HEBO (Cowen-Rivers et al., JAIR 2022)
takes that one; the λ of the evidence predicts better: docs/log.md, 2026-11-18.
"""

from typing import Any

import torch
from torch import Tensor

from amortes.acquisition.fitted import Fitted, checked_points
from amortes.acquisition.units import Units
from amortes.nets.base import Network

POWERS = tuple(-1.0 + 0.5 * i for i in range(9))
LEAST_POINTS = 4
"""Results below which there is nothing to choose by."""
FROM_SCRATCH = 20
"""Results below which every fit is from scratch."""
SPREAD = 0.75
"""Standard deviation of the prior of λ, about 1."""


def fit_warped(
    network: Network[Any],
    X: Tensor,
    y: Tensor,
    *,
    maximise: bool,
    earlier: Fitted | None = None,
) -> Fitted:
    """The network fitted to X, `n x d`, and y, `n`, in the units that explain y best.

    Networks that do not know the density of their data take y as it is. `earlier` is a fit to most
    of the same results, the first of them. If the others are few and no surprise to it, its
    hyperparameters and units stay; else inference begins with them.
    """
    plain = Units.of(y, maximise=maximise)
    if len(y) < LEAST_POINTS or float(plain.to_network(y).std()) == 0.0 or not network.has_evidence:
        return Fitted(network, X, y, maximise=maximise)
    X = checked_points(X, "X")
    if earlier is not None and (same := _with_news(earlier, X, y)) is not None:
        return same
    choices, Z, slopes = plain.with_powers(POWERS, y)
    prior = torch.tensor([_log_prior(units) for units in choices], dtype=slopes.dtype)
    slopes = slopes + prior[:, None] / len(y)
    independent = (slopes - 0.5 * Z.square()).sum(-1)
    if earlier is not None:
        independent[[units.power == earlier.units.power for units in choices]] = torch.inf
    order = independent.argsort(descending=True)
    choices, Z, slopes = [choices[i] for i in order], Z[order], slopes[order]
    with torch.no_grad():
        state, choice = network.condition_likeliest(
            X[None], Z[None], slopes[None], None if earlier is None else earlier.state
        )
    return Fitted(network, X, y, maximise=maximise, units=choices[int(choice)], state=state)


def milestones(n: int) -> list[int]:
    """How many of n results, the first ones, to fit to in turn, each fit beginning with the last.

    One result more changes little of what is known about hyperparameters. So from `FROM_SCRATCH`
    results on only the first of these fits is from scratch, every 4 results, every 8 from 40 on, 16
    from 80 on, and so forth. The second follows it by a few steps, and the last one keeps its
    hyperparameters if it can: docs/log.md, 2026-11-18.
    """
    if n < FROM_SCRATCH:
        return [n]
    return sorted({n - n % (2 << (n // 20).bit_length()), n - n % _refreshed_every(n), n})


def _refreshed_every(n: int) -> int:
    """Results after which hyperparameters are inferred anew: 4, 8 from 80 on, 16 from 160 on."""
    return max(4, 1 << (n // 20).bit_length())


def _with_news(earlier: Fitted, X: Tensor, y: Tensor) -> Fitted | None:
    """An earlier fit to the first results with the others, too; None if that would not do."""
    first, network, units = len(earlier.y), earlier.network, earlier.units
    few = 0 < len(y) - first < _refreshed_every(len(y))
    if not few or not earlier.is_to(X[:first], y[:first]):
        return None
    news = units.to_network(y[first:])
    state = network.with_results(earlier.state, X[None, first:], news[None])
    if state is None:
        return None
    return Fitted(network, X, y, maximise=earlier.maximise, units=units, state=state)


def _log_prior(units: Units) -> float:
    return -0.5 * ((units.power - 1.0) / SPREAD) ** 2
