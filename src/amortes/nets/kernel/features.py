"""What the alpha network sees of draws and queries, and the unit in which it predicts a gain.

The unit is the sketched gain, plus a small share of the reducible entropy log(1 + v / s^2) / 2, so
that gains of 1e-4 nats late in an optimisation are resolved as well as those of 1 nat at its
beginning.

Shapes: b datasets, k particles, s draws, q queries, F features.
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from amortes.nets.kernel.correction import best_mean
from amortes.nets.kernel.sketch import Sketch, Terms

DRAW_FEATURES = 4
QUERY_FEATURES = 11

# Share of the reducible entropy, and nats, that are added to make the unit.
REDUCIBLE_SHARE = 0.002
SMALLEST_UNIT = 1e-5
# Variance of the means among particles that counts as none.
NO_SPREAD = 1e-12


@dataclass(frozen=True)
class Features:
    """Those of one gain at queries."""

    unit: Tensor  # b x q
    draws: Tensor  # b x q x s x F
    queries: Tensor  # b x q x F


@dataclass(frozen=True)
class Describer:
    """What the features of all queries share."""

    weights: Tensor  # b x 1 x k, of particles
    precision: Tensor  # b x k x 1, 1 / s^2
    best: Tensor  # b x k x 1, the highest posterior mean at an observed point
    optima: Tensor  # b x 1 x s, values of the drawn optima
    above: Tensor  # b x 1 x s, by how much they are higher than the best
    dataset: Tensor  # b x 1 x 4, features of the dataset

    @classmethod
    def of(cls, sketch: Sketch) -> Self:
        """For queries of that sketch."""
        conditioned = sketch.conditioned
        w = conditioned.weights[:, None]
        noise, best = conditioned.noise_variance[..., None], best_mean(conditioned)
        optima = sketch.optima.f[:, None]
        n, d = conditioned.num_observed, conditioned.X.shape[-1]
        own = torch.cat([w @ noise.log() / 2, w.square().sum(-1, keepdim=True)], dim=-1)
        size = own.new_tensor([math.log(n) / 3.0, math.log(d)]).expand_as(own)
        return cls(
            weights=w,
            precision=noise.reciprocal(),
            best=best,
            optima=optima,
            above=optima - w @ best,
            dataset=torch.cat([own, size], dim=-1),
        )

    def describe(self, terms: Terms) -> Features:
        """The features of one gain."""
        before = terms.before
        b, k, q = before.mean.shape
        sd, gap = before.variance.sqrt(), before.mean - self.best
        reducible = 0.5 * (before.variance * self.precision).log1p()
        by_particle = torch.stack([sd, (gap / sd).asinh(), gap, sd.log(), reducible], dim=-1)
        averages = (self.weights @ by_particle.reshape(b, k, -1)).reshape(b, q, 5)
        average_sd, average = torch.split_with_sizes(averages, [1, 4], dim=-1)
        sketched = terms.mean_gain[..., None]
        unit = sketched.clamp_min(0.0) + REDUCIBLE_SHARE * average[..., 3:] + SMALLEST_UNIT
        per_unit = unit.reciprocal()  # b x q x 1
        draws = [
            (terms.gain * per_unit).asinh(),
            terms.shift.asinh(),
            self.above.expand_as(terms.gain),
            ((self.optima - before.middle[..., None]) / average_sd).asinh(),
        ]
        queries = [
            average,
            0.5 * before.spread.clamp_min(NO_SPREAD).log()[..., None],
            unit.log() / 3.0,
            sketched * per_unit,
            self.dataset.expand(b, q, -1),
        ]
        draws_and_queries = torch.stack(draws, dim=-1), torch.cat(queries, dim=-1)
        return Features(unit.squeeze(-1), *draws_and_queries)
