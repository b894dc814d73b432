"""Information gains: what draws of the optimum would tell about a query.

    gain(x) = H[y | D, x] - mean over draws s of H[y | D, x, I_s],    I = x*, f*, or both.

Conditioning on the draws is in closed form (`given_optimum`, `max_value`) and done once for a
dataset. Nothing is computed for a gain until it is asked for.

Entropies of mixtures over particles are those of `learned_gains.overlap_entropy`. Networks that no
gain network was trained for use these gains; others learn from them.

What is known before is the average of what is known after. So the weights w_ks of particles given a
draw must average to those without any, w_k, over draws. Approximate evidence e_ks breaks that, and
gains would then be about what the approximation happens to prefer. One factor for each particle,

    w_ks = c_k w_k e_ks / sum_l c_l w_l e_ls,    mean over s of w_ks = w_k,

mends it; the c_k are found by scaling in turn (Sinkhorn & Knopp, 1967, Pacific J. Math. 21).

Shapes: b datasets, k particles, s draws, q queries, J Gaussians, d dimensions.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amortes.nets.base import Hint
from amortes.nets.kernel.conditioning import Conditioned
from amortes.nets.kernel.gains.learned_gains import overlap_entropy
from amortes.nets.kernel.numpy_kernels import QUIET, Array, PullBack, differentiable, in_parts
from amortes.nets.kernel.optimum.given_optimum import GivenOptimum, TruncatedMoments
from amortes.nets.kernel.optimum.local_maximum import LocalMaximum, local_maximum
from amortes.nets.kernel.optimum.max_value import GivenMaximum
from amortes.nets.kernel.optimum.thompson_draws import ThompsonDraws

# Representer points, the likeliest to be the highest, that are considered when x* is known.
POINTS = 16
# Scalings, and how much of a factor one may change, in nats.
SCALINGS, LARGEST = 40, 3.0
# Particles, draws and queries at once: their columns (`given_optimum`) take some 1 MB.
CHUNK = 1 << 13
# Queries at once of very many draws, and least weight of a particle given all draws.
AT_ONCE, LEAST_WEIGHT = 24, 1e-30


class Averages(NamedTuple):
    """Over draws of the optimum; see `gain_network`."""

    gain: Array  # b x q
    mean: Array  # b x k x q, of f given a draw, as the particle weighs draws
    variance: Array  # b x k x q
    joint: Array  # b x k x k, the matrix M


@dataclass(frozen=True)
class DrawnGains:
    """Of s draws of the optimum of each dataset."""

    conditioned: Conditioned
    draws: ThompsonDraws
    _given: dict[str, tuple[TruncatedMoments | GivenMaximum, Array]] = field(default_factory=dict)

    def at(self, name: str, Xq: Tensor) -> Tensor:
        """The gain of that name from each draw, in nats, at Xq, `b x q x d`: `b x q x s`."""
        gradient = torch.is_grad_enabled() and Xq.requires_grad
        (gains,) = differentiable(lambda X: self.forward(name, X, gradient=gradient), Xq)
        return gains.mT

    def mean(self, name: str, Xq: Tensor) -> Tensor:
        """The acquisition value, the mean over draws: `b x q`."""
        return self.at(name, Xq).mean(-1)

    @QUIET
    def mean_with_gradient(self, name: str, Xq: Tensor) -> tuple[Tensor, Tensor]:
        """The same and its gradient by Xq, `b x q` and `b x q x d`, without a graph."""
        (gains,), pull_back = self.forward(name, Xq.numpy(), gradient=True)
        share = np.full(gains.shape, 1.0 / gains.shape[1])
        return torch.from_numpy(gains.mean(1)), torch.from_numpy(pull_back(share))

    def forward(self, name: str, X: Array, *, gradient: bool) -> tuple[tuple[Array, ...], PullBack]:
        """`at` with queries last, `b x s x q`, and its derivatives, only with `gradient`."""
        count = max(1, CHUNK // (self.draws.optima.f.numel() * self.draws.maximum.shape[1]))
        some = partial(self._some, name, gradient=gradient)
        return in_parts(some, X, count, gradient=gradient)

    def _some(self, name: str, X: Array, *, gradient: bool) -> tuple[tuple[Array], PullBack]:
        """`forward` at queries whose temporaries fit the cache."""
        given, weights = self.given(name)
        (mean, variance, m, v), pull_back_given = given.forward(X)
        # No hint counts as one more.
        m = np.concatenate([m, mean[:, :, None]], axis=2)  # b x k x (s + 1) x q
        v = np.concatenate([v, variance[:, :, None]], axis=2)
        v += self.conditioned.noise_variance.numpy()[..., None, None]
        entropy, slope_m, slope_v = overlap_entropy(weights, m, v, gradient=gradient)

        def pull_back(by_gain: Array) -> Array:
            by_entropy = np.concatenate([-by_gain, by_gain.sum(1, keepdims=True)], axis=1)
            by_m, by_v = (by_entropy[:, None] * slope for slope in (slope_m, slope_v))
            return pull_back_given(by_m[:, :, -1], by_v[:, :, -1], by_m[:, :, :-1], by_v[:, :, :-1])

        return (entropy[:, -1:] - entropy[:, :-1],), pull_back

    def averages(self, name: str, X: Array) -> Averages:
        """What a gain network learns of the gain of that name, at X, `b x q x d`."""
        given, weights = self.given(name)
        known = weights[:, :, :-1, 0]  # b x k x s
        share = known / np.maximum(known.sum(-1, keepdims=True), LEAST_WEIGHT)
        gains, means, variances = [], [], []
        for part in np.split(X, range(AT_ONCE, X.shape[1], AT_ONCE), axis=1):
            (gain,), _ = self._some(name, part, gradient=False)
            (_, _, mean, variance), _ = given.forward(part)
            gains.append(gain.mean(1))
            means.append((share[:, :, None] @ mean)[:, :, 0])
            variances.append((share[:, :, None] @ variance)[:, :, 0])
        joint = known @ known.swapaxes(-1, -2) / known.shape[-1]
        gain, mean, variance = (np.concatenate(t, axis=-1) for t in (gains, means, variances))
        return Averages(gain, mean, variance, joint)

    def given(self, name: str) -> tuple[TruncatedMoments | GivenMaximum, Array]:
        """The posterior given what that gain is about, and the particles' weights.

        These are given each draw and, last, without any: `b x k x (s + 1) x 1`.
        """
        if name not in self._given:
            self._given[name] = self._condition(name)
        return self._given[name]

    @torch.inference_mode(False)  # kept for calls that need gradients
    @torch.no_grad()
    def _condition(self, name: str) -> tuple[TruncatedMoments | GivenMaximum, Array]:
        f, before = self.draws.optima.f, self.conditioned.particles.log_weights[..., None]
        found: TruncatedMoments | GivenMaximum
        if name == "mes":
            found = GivenMaximum.of(self.conditioned, self.draws, f, places=1)
            evidence = found.log_evidence.squeeze(-1)
        else:
            optimum = GivenOptimum.of(self._local, f if name == "jes" else None)
            found, evidence = TruncatedMoments(optimum), optimum.log_evidence
        weights = torch.cat([balanced(before, evidence), before], dim=-1)
        return found, weights.exp()[..., None].numpy()

    @cached_property
    def _local(self) -> LocalMaximum:
        points = self.draws.likeliest(self.conditioned, POINTS)
        return local_maximum(self.conditioned, points, self.draws.optima.x)


def balanced(log_weights: Tensor, log_evidence: Tensor) -> Tensor:
    """Logarithms of the weights given each draw, `b x k x s`, that average to those without any.

    log_weights `b x k x 1`, log_evidence `b x k x s`.
    """
    log_factor, log_count = torch.zeros_like(log_weights), math.log(log_evidence.shape[-1])
    for _ in range(SCALINGS):
        each = (log_weights + log_evidence + log_factor).log_softmax(1)
        off = log_weights - (each.logsumexp(-1, keepdim=True) - log_count)
        log_factor = log_factor + off.clamp(-LARGEST, LARGEST)
    return (log_weights + log_evidence + log_factor).log_softmax(1)


def given_hint(
    conditioned: Conditioned, Xq: Tensor, hint: Hint, draws: ThompsonDraws
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, sd and log evidence of J Gaussians for f at Xq, `b x q x d`, given the hint.

    The first two are `b x k x q x J`; the evidence, of the particle and within it of the component,
    broadcasts to that.
    """
    f = None if hint.f is None else hint.f[:, None]
    if hint.x is None:
        assert f is not None
        maximum = GivenMaximum.of(conditioned, draws, f)
        _, _, mean, variance = maximum.posterior(Xq)
        return mean.squeeze(3), variance.squeeze(3).sqrt(), maximum.log_evidence
    local = local_maximum(conditioned, draws.representers, hint.x[:, None])
    with torch.no_grad():
        optimum = GivenOptimum.of(local, f)
        known = TruncatedMoments(optimum)
    _, _, mean, variance = known.posterior(Xq)
    return mean, variance.sqrt(), optimum.log_evidence[..., None]
