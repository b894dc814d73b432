"""Mixtures of Gaussians: q(y) = Σ_j w_j N(y; μ_j, σ_j²).

Closed forms for all but the entropy and the cross-entropy (quadrature, see `mixture_entropy` and
`mixture_cross_entropy`) and the quantile (root finding). The expected improvement is
Σ_j w_j σ_j h((μ_j - best) / σ_j) with h(u) = φ(u) + u Φ(u), summed in log space.
"""

import math

import torch
from torch import Tensor
from torch.special import ndtri

from amortes.errors import DataError
from amortes.nets.distributions.base import Index, Predictive, expand_to, index_batch
from amortes.nets.distributions.mixture_cross_entropy import mixture_cross_entropy
from amortes.nets.distributions.mixture_entropy import mixture_entropy
from amortes.nets.distributions.normal import log_h, log_ndtr, log_normal, log_sum_exp, ndtr

MAX_ROOT_STEPS = 200


class GaussianMixture(Predictive):
    """k Gaussians: `log_weights` (normalised here; -inf allowed), `means`, `sds`, all `... x k`."""

    def __init__(self, log_weights: Tensor, means: Tensor, sds: Tensor) -> None:
        self.means = expand_to(means, log_weights.shape, sds.shape)
        self.log_weights = torch.log_softmax(log_weights, -1).expand_as(self.means)
        self.sds = sds.expand_as(self.means)
        _check(self.log_weights, self.means, self.sds)

    @property
    def batch_shape(self) -> torch.Size:
        """The shape `...` of the batch."""
        return self.means.shape[:-1]

    @property
    def weights(self) -> Tensor:
        """The normalised weights, `... x k`."""
        return self.log_weights.exp()

    @property
    def mean(self) -> Tensor:
        """Σ_j w_j μ_j."""
        return (self.weights * self.means).sum(-1)

    @property
    def variance(self) -> Tensor:
        """Σ_j w_j (σ_j² + (μ_j - mean)²)."""
        between = self.means - self.mean.unsqueeze(-1)
        return (self.weights * (self.sds.square() + between.square())).sum(-1)

    def log_prob(self, y: Tensor) -> Tensor:
        """The log of Σ_j w_j N(y; μ_j, σ_j²)."""
        return log_sum_exp(self.log_weights + log_normal(self._z(y)) - self.sds.log())

    def cdf(self, y: Tensor) -> Tensor:
        """Σ_j w_j Φ((y - μ_j) / σ_j)."""
        return (self.weights * ndtr(self._z(y))).sum(-1)

    def probability_of_improvement(self, best: Tensor) -> Tensor:
        """Σ_j w_j Φ((μ_j - best) / σ_j)."""
        return (self.weights * ndtr(-self._z(best))).sum(-1)

    def log_expected_improvement(self, best: Tensor) -> Tensor:
        """The log of Σ_j w_j σ_j h((μ_j - best) / σ_j)."""
        return log_sum_exp(self.log_weights + self.sds.log() + log_h(-self._z(best)))

    def icdf(self, p: Tensor) -> Tensor:
        """The p-quantile to rounding error, by safeguarded Newton steps; ±inf at p = 0 and 1."""
        # Above the median solve the mirror image: 1 - p has the digits, and log Φ the gradient.
        p = expand_to(p, self.batch_shape)
        sign = torch.where(p > 0.5, -1.0, 1.0).to(p.dtype)
        target = torch.where(p > 0.5, 1.0 - p, p)
        mirrored = GaussianMixture(self.log_weights, sign.unsqueeze(-1) * self.means, self.sds)
        possible = target > 0
        log_target = torch.where(possible, target, 0.5).log()
        root = mirrored._solve(log_target.detach())
        # One Newton step at the root changes nothing but carries the gradient.
        log_cdf, step = mirrored._log_cdf_and_scale(root)
        root = root - (log_cdf - log_target) * step.detach()
        return sign * torch.where(possible, root, -math.inf)

    def entropy(self) -> Tensor:
        """-∫ q log q dy in nats, within 1e-3."""
        return mixture_entropy(self.log_weights, self.means, self.sds)

    def cross_entropy(self, mean: Tensor, variance: Tensor) -> Tensor:
        """-∫ N(y; mean, variance) log q(y) dy, by a rule that is exact for one component.

        Components much narrower than a fifth of the target's standard deviation blur.
        """
        mean = expand_to(mean, variance.shape, self.batch_shape)
        shape = (*mean.shape, self.means.shape[-1])
        return mixture_cross_entropy(
            self.log_weights.expand(shape),
            self.means.expand(shape),
            self.sds.expand(shape),
            mean,
            variance.expand_as(mean),
        )

    def sample(self, generator: torch.Generator, shape: tuple[int, ...] = ()) -> Tensor:
        """Draw a component, then from it."""
        with torch.no_grad():
            flat = self.weights.reshape(-1, self.means.shape[-1])
            count = math.prod(shape)
            choice = torch.multinomial(flat, count, replacement=True, generator=generator)
            means, sds = (p.reshape(flat.shape).gather(-1, choice) for p in (self.means, self.sds))
            noise = torch.randn(
                means.shape, generator=generator, dtype=means.dtype, device=means.device
            )
            return (means + sds * noise).mT.reshape(shape + self.batch_shape)

    def affine(self, scale: Tensor, shift: Tensor) -> "GaussianMixture":
        """Again a mixture; `scale` may have any signs, but no zeros."""
        scale = scale.unsqueeze(-1)
        return GaussianMixture(
            self.log_weights, scale * self.means + shift.unsqueeze(-1), scale.abs() * self.sds
        )

    def __getitem__(self, index: Index | tuple[Index, ...]) -> "GaussianMixture":
        parameters = (self.log_weights, self.means, self.sds)
        return GaussianMixture(*(index_batch(p, index) for p in parameters))

    def _z(self, y: Tensor) -> Tensor:
        return (y.unsqueeze(-1) - self.means) / self.sds

    def _log_cdf_and_scale(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """The values log F(y) and F(y) / q(y), the latter the inverse of the derivative."""
        log_cdf = log_sum_exp(self.log_weights + log_ndtr(self._z(y)))
        return log_cdf, (log_cdf - self.log_prob(y)).exp()

    @torch.no_grad()
    def _solve(self, log_target: Tensor) -> Tensor:
        """Solve log F(y) = log_target, `...`, by Newton steps that must halve, or else bisection.

        Up to an error that one more Newton step makes a rounding error. Few quantiles need many
        steps, so those found are left out of further ones.
        """
        shape, k = log_target.shape, self.means.shape[-1]
        parameters = (self.log_weights, self.means, self.sds)
        part = GaussianMixture(*(t.expand(*shape, k).reshape(-1, k) for t in parameters))
        log_target = log_target.flatten()
        roots, place = torch.empty_like(log_target), torch.arange(len(log_target))
        z = ndtri(log_target.exp())
        # A mixture's quantile lies between the extreme quantiles of its components.
        quantiles = part.means + part.sds * z.unsqueeze(-1)
        low, high = quantiles.amin(-1), quantiles.amax(-1)
        y = (part.mean + part.variance.sqrt() * z).clamp(low, high)
        last_step = high - low
        eps = torch.finfo(y.dtype).eps
        for _ in range(MAX_ROOT_STEPS):
            log_cdf, scale = part._log_cdf_and_scale(y)
            error = log_cdf - log_target
            low, high = torch.where(error < 0, y, low), torch.where(error < 0, high, y)
            newton = y - error * scale
            fast = (newton - y).abs() < 0.5 * last_step.abs()
            safe = (newton >= low) & (newton <= high) & fast
            following = torch.where(safe, newton, 0.5 * (low + high))
            last_step, y = following - y, following
            roots[place] = y
            left = last_step.abs() > eps * y.abs() + eps**0.5 * part.sds.amin(-1)
            if not bool(left.any()):
                break
            if not bool(left.all()):
                part = part[left]
                columns = (log_target, place, low, high, y, last_step)
                log_target, place, low, high, y, last_step = (t[left] for t in columns)
        return roots.reshape(shape)


def _check(log_weights: Tensor, means: Tensor, sds: Tensor) -> None:
    """Raise DataError for parameters that are no mixture; sums, because they are cheap."""
    if not bool(sds.amin() > 0):
        raise DataError(f"sds must be positive, got a minimum of {sds.amin().item():g}.")
    if not bool(torch.isfinite(means.sum() + sds.sum() + log_weights.amax(-1).sum())):
        raise DataError(
            "means, sds and log_weights of a mixture must be finite (a weight may be zero, but not "
            "all of them), got NaN or infinity; look at the network that made them."
        )
