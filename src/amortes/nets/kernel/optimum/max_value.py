"""The posterior of f given the value f* of its maximum, but not where it is.

A mixture over places where the maximum may be, by draws of it on the representer points whose
maximum is close to f*: condition on f* there, then truncate f(x) at f*. The evidence of a particle
is a power of the density of its maximum at f*, estimated from draws.

Shapes: b datasets, k particles, s maxima, t draws, q queries, d dimensions, J places.

References: Wang & Jegelka, Max-value entropy search for efficient Bayesian optimization, ICML 2017.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from amortes.nets.distributions.normal import log_normal, truncated_moments
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned, Moments
from amortes.nets.kernel.numpy_kernels import Array, PullBack
from amortes.nets.kernel.optimum.given_optimum import EVIDENCE
from amortes.nets.kernel.optimum.thompson_draws import ThompsonDraws

# Places considered when only f* is known, and the sd of the value there, relative to the sd before
# and to the square of d: the maximum is near a representer point, not on it. See docs/log.md,
# 2026-11-16.
PLACES = 4
PLACE_SLACK = 0.05
# Of the density of the maximum, estimated from draws: chosen by the gain in log-likelihood from
# hints, docs/log.md, 2026-11-15.
BANDWIDTH = 0.5
SMALLEST_BANDWIDTH = 0.02


@dataclass(frozen=True)
class GivenMaximum:
    """Given each of s maxima f*, at J places for every particle."""

    conditioned: Conditioned
    points: Moments  # b x k x m, at the representer points
    f: Tensor  # b x s
    place: Tensor  # b x k x s x J, indices of representer points
    log_evidence: Tensor  # b x k x s x J

    @classmethod
    def of(
        cls, conditioned: Conditioned, draws: ThompsonDraws, f: Tensor, places: int = PLACES
    ) -> Self:
        """Maxima f, `b x s`, and how many places to consider for each."""
        kernel = log_kernel_of_maximum(draws.maximum, f)  # b x k x s x t
        chosen = kernel.topk(min(places, kernel.shape[-1]), dim=-1)
        place = draws.argmax[:, :, None].expand(-1, -1, f.shape[1], -1).gather(3, chosen.indices)
        # The chosen stand for all.
        total = EVIDENCE * kernel.logsumexp(-1, keepdim=True)
        evidence = chosen.values.log_softmax(-1) + total
        return cls(conditioned, draws.representers.moments, f, place, evidence)

    def posterior(self, Xq: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Means and variances of f at Xq, `b x q x d`.

        Before, `b x k x q`, and given each maximum and place, `b x k x q x s x J`. f(x*) is
        observed with a noise of `PLACE_SLACK` d^2 times its sd.
        """
        at_q = self.conditioned.moments(Xq)
        (b, k, s, J), (q, d) = self.place.shape, Xq.shape[1:]
        flat = self.place.flatten(2)
        cross = self.conditioned.covariance(at_q, self.points)
        cross = cross.gather(3, flat[:, :, None].expand(-1, -1, q, -1)).reshape(b, k, q, s, J)
        star_mean, star_variance = (
            t.gather(2, flat).reshape(b, k, 1, s, J)
            for t in (self.points.mean, self.points.variance)
        )
        precision = 1.0 / (1.0 + (PLACE_SLACK * d**2) ** 2) / star_variance
        f, before = self.f[:, None, None, :, None], at_q.variance[..., None, None]
        mean = at_q.mean[..., None, None] + cross * (precision * (f - star_mean))
        sd = (before - precision * cross.square()).clamp_min(VARIANCE_FLOOR * before).sqrt()
        return at_q.mean, at_q.variance, *truncated_moments(mean, sd, f)

    def forward(self, X: Array) -> tuple[tuple[Array, ...], PullBack]:
        """The same at one place, with queries last, and derivatives; see `TruncatedMoments`."""
        with torch.inference_mode(False), torch.enable_grad():
            Xq = torch.from_numpy(X).requires_grad_()
            mean, variance, m, v = self.posterior(Xq)
            moments = mean, variance, m.squeeze(-1).mT, v.squeeze(-1).mT

        def pull_back(*by_moments: Array) -> Array:
            by = [torch.from_numpy(t) for t in by_moments]
            by_X: Array = torch.autograd.grad(moments, Xq, by)[0].numpy()
            return by_X

        return tuple(t.detach().numpy() for t in moments), pull_back


def log_kernel_of_maximum(maximum: Tensor, f: Tensor) -> Tensor:
    """How close each draw of the maximum, `b x k x t`, is to f, `b x s`: `b x k x s x t`.

    The mean of their exponentials estimates the density of the maximum at f under each particle;
    the bandwidth is half the standard deviation of the draws.
    """
    draws = maximum[:, :, None]
    square = (BANDWIDTH * draws.std(-1, keepdim=True)).square() + SMALLEST_BANDWIDTH**2
    return log_normal((f[:, None, :, None] - draws) / square.sqrt()) - 0.5 * square.log()
