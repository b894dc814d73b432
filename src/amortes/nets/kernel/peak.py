"""The posterior of f, given that its maximum is at x*.

*Locally.* In every coordinate in which x* is inside the cube, its gradient vanishes, which is
linear in f: a Gaussian can be conditioned on it exactly. How likely that is, is what the Kac-Rice
formula says: the density of a local maximum at x* is

    p(grad f(x*) = 0)  E[ |det H|, H negative definite | grad f(x*) = 0 ],

H being the Hessian, of which we take the diagonal. A face of the cube on which x* is needs neither.

*Globally.* Nothing is higher: f(x*) less the maximum of f, as far as that was known before, is not
negative, and neither is f(x*) - f(m) for any rival m (a landmark). One after the other, first for
the maximum, then for those rivals where most would be missing, the gap is truncated at zero and the
Gaussian with the moments of the result is kept (assumed-density filtering). The probabilities of
the truncations multiply to that of the whole.

All is linear in a few directions of f: its slopes at x*, f(x*), and gaps. What is known is kept as
one row for each (`known`), computed once for a dataset.

Shapes: b datasets, k particles, s places, m rivals, q queries, d dimensions.

References: Adler & Taylor, Random Fields and Geometry, 2007, chapter 11 (Kac-Rice); Minka, A family
of algorithms for approximate Bayesian inference, 2001 (assumed-density filtering).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from amortes import linalg
from amortes.nets.distributions.normal import cut_off, log_h, log_ndtr, log_normal
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned
from amortes.nets.kernel.known import Known, Places
from amortes.nets.kernel.rivals import Rivals
from amortes.prior.kernels import radial_curvature, radial_slope

# A coordinate of x* this close to a face counts as on it: its derivative need not vanish.
BOUNDARY = 1e-6
# Slack of the zero-gradient observation, relative to the prior variance of the derivative.
GRADIENT_SLACK = 1e-6
# Relative to the prior sd, how much higher than x* a rival may be: one at x* itself is not.
TIE = 2e-4
# The normal distribution function is about the logistic one of so many times the argument.
LOGISTIC = 1.702
TINY = 1e-12
# Up to so many dimensions rivals are dense enough to stand for the maximum.
DENSE = 2


@dataclass
class Peak:
    """What is known of f, given a maximum at each of s places; the methods add to it."""

    places: Places
    rivals: Rivals
    inside: Tensor  # b x 1 x s x d: 1 in coordinates in which x* is not on a face, else 0
    log_flat: Tensor  # b x k x s, density of the zero gradient
    curvature: Tensor  # b x k x s x d, mean of the diagonal of the Hessian at x*
    curvature_variance: Tensor  # b x k x s x d
    curvature_covariance: Tensor  # b x k x s x d, with f(x*)
    star_mean: Tensor  # b x k x s, of f(x*)
    star_variance: Tensor  # b x k x s
    star_rows: Tensor  # b x k x s x r
    rival_mean: Tensor  # b x k x s x m, of f at rivals
    rival_variance: Tensor  # b x k x s x m
    rival_rows: Tensor  # b x k x s x m x r
    rival_star: Tensor  # b x k x s x m, posterior covariance with f(x*)
    mix: Tensor  # b x k x s x r x (d + 2 + rivals met)
    pull: Tensor  # b x k x s x r
    met: list[Tensor]  # indices of rivals, each b x k x s

    def log_density(self) -> Tensor:
        """Log density of a local maximum at x*: `b x k x s`."""
        sd = self.curvature_variance.sqrt()
        log_sharp = sd.log() + log_h(-self.curvature / sd)
        return self.log_flat + (log_sharp * self.inside).sum(-1)

    def observe_value(self, f: Tensor) -> Tensor:
        """Condition on f(x*) = f, `b x s`; returns the log density of that, `b x k x s`."""
        surprise = f[:, None] - self.star_mean
        sd = self.star_variance.sqrt()
        slope = self.curvature_covariance / self.star_variance[..., None]
        self.curvature = self.curvature + slope * surprise[..., None]
        left = self.curvature_variance - slope * self.curvature_covariance
        self.curvature_variance = left.clamp_min(VARIANCE_FLOOR * self.curvature_variance)
        unit = torch.zeros_like(self.mix[..., 0, :])
        unit[..., self.places.x.shape[-1]] = 1.0
        self._add(unit, self.star_rows, self.rival_star, self.star_variance, 1 / sd, surprise / sd)
        return log_normal(surprise / sd) - sd.log()

    def observe_highest(self, rounds: int) -> Tensor:
        """Condition on f(x*) >= the maximum, and >= f at `rounds` rivals where it is least clear.

        Returns the log probability of that, `b x k x s`.
        """
        conditioned = self.places.conditioned
        log_probability = torch.zeros_like(self.log_flat)
        if self.places.x.shape[-1] > DENSE:
            log_probability = self._observe_maximum()
        fresh = torch.ones_like(self.rival_star, dtype=torch.bool)
        tie = TIE * conditioned.prior_variance.sqrt()[..., None, None]
        self.mix = torch.nn.functional.pad(self.mix, (0, rounds))
        for _ in range(rounds):
            gap = self.star_mean[..., None] - self.rival_mean + tie
            total = self.star_variance[..., None] + self._floored(self.rival_variance)
            sd = self._floored(total - 2.0 * self.rival_star).sqrt()
            missing = sd * torch.nn.functional.softplus(-LOGISTIC * gap / sd)  # E[max(-gap, 0)]
            worst = missing.where(fresh, -1.0).argmax(-1, keepdim=True)
            fresh = fresh.scatter(3, worst, False)
            gap, sd = gap.gather(3, worst).squeeze(-1), sd.gather(3, worst).squeeze(-1)
            log_probability = log_probability + log_ndtr(gap / sd)
            self._truncate_rival(worst, gap / sd, sd)
        return log_probability

    def known(self) -> "Known":
        """What queries need of it."""
        return Known(
            mix=self.mix,
            pull=self.pull,
            star_rows=self.star_rows,
            star_mean=self.star_mean,
            star_variance=self.star_variance,
            share=self.rivals.share,
            floor=VARIANCE_FLOOR * self.places.conditioned.prior_variance[..., None, None],
            met=_stacked(self.met, self.log_flat),
        )

    def _observe_maximum(self) -> Tensor:
        """Truncate the gap to the maximum, M, at zero; returns the log probability of that.

        By Stein's lemma cov(f(x), M) = sum_m P(m is the highest) cov(f(x), f(m)).
        """
        rivals = self.rivals
        share = rivals.share[:, :, None, None]  # b x k x 1 x 1 x m
        own = (share @ self.rival_rows).squeeze(-2)  # b x k x s x r
        with_rivals = (rivals.covariance @ rivals.share[..., None]).squeeze(-1)  # b x k x m
        variance = (rivals.share * with_rivals).sum(-1) + rivals.unexplained
        with_rivals = with_rivals[:, :, None] - (self.rival_rows @ own[..., None]).squeeze(-1)
        with_star = (share.squeeze(-2) * self.rival_star).sum(-1)
        left = variance[..., None] - own.square().sum(-1)
        mean = rivals.highest[..., None] + (own * self.pull).sum(-1)
        # What is unexplained stays, so nothing here comes close to zero.
        sd = (self.star_variance + left - 2.0 * with_star).clamp_min(TINY).sqrt()
        z = (self.star_mean - mean) / sd
        unit = torch.zeros_like(self.mix[..., 0, :])
        unit[..., self.places.x.shape[-1]] = 1.0
        unit[..., self.places.x.shape[-1] + 1] = -1.0
        self._truncate(unit, own, with_rivals, with_star, z, sd)
        log_probability: Tensor = log_ndtr(z)
        return log_probability

    def _truncate_rival(self, index: Tensor, z: Tensor, sd: Tensor) -> None:
        """Truncate the gap to rival `index`, `b x k x s x 1`, with standardised mean z, at zero."""
        b, k, s, m, r = self.rival_rows.shape
        own = self.rival_rows.gather(3, index[..., None].expand(b, k, s, 1, r)).squeeze(3)
        columns = self.rivals.covariance[:, :, None].expand(b, k, s, m, m)
        prior = columns.gather(4, index[..., None].expand(b, k, s, m, 1)).squeeze(4)
        with_rival = prior - (self.rival_rows @ own[..., None]).squeeze(-1)  # b x k x s x m
        with_star = self.rival_star.gather(3, index).squeeze(3)
        unit = torch.zeros_like(self.mix[..., 0, :])
        d = self.places.x.shape[-1]
        unit[..., d] = 1.0
        unit[..., d + 2 + len(self.met)] = -1.0
        self.met.append(index.squeeze(3))
        self._truncate(unit, own, with_rival, with_star, z, sd)

    def _truncate(
        self,
        unit: Tensor,
        own: Tensor,
        with_rivals: Tensor,
        with_star: Tensor,
        z: Tensor,
        sd: Tensor,
    ) -> None:
        """Truncate at zero the gap to something with rows `own` and these covariances."""
        hazard, distance, _ = cut_off(z)
        scale, pull = (hazard * distance).sqrt() / sd, (hazard / distance).sqrt()
        self._add(
            unit,
            self.star_rows - own,
            self.rival_star - with_rivals,
            self.star_variance - with_star,
            scale,
            pull,
        )

    def _add(
        self,
        unit: Tensor,
        known: Tensor,
        with_rivals: Tensor,
        with_star: Tensor,
        scale: Tensor,
        pull: Tensor,
    ) -> None:
        """A row for one more direction of f, times `scale`.

        `unit` says what it is in terms of the raw covariances, `known` are its components along the
        rows so far; its posterior covariances, with rivals and f(x*), are given.
        """
        mixed = unit - (known[..., None, :] @ self.mix).squeeze(-2)
        self.mix = torch.cat([self.mix, (scale[..., None] * mixed)[..., None, :]], dim=-2)
        at_rivals, at_star = scale[..., None] * with_rivals, scale * with_star
        self.rival_rows = torch.cat([self.rival_rows, at_rivals[..., None]], dim=-1)
        self.star_rows = torch.cat([self.star_rows, at_star[..., None]], dim=-1)
        self.pull = torch.cat([self.pull, pull[..., None]], dim=-1)
        self.rival_mean = torch.addcmul(self.rival_mean, at_rivals, pull[..., None])
        self.rival_variance = torch.addcmul(self.rival_variance, at_rivals, at_rivals, value=-1.0)
        self.rival_star = torch.addcmul(self.rival_star, at_rivals, at_star[..., None], value=-1.0)
        self.star_mean = self.star_mean + at_star * pull
        self.star_variance = (self.star_variance - at_star.square()).clamp_min(0.0)

    def _floored(self, variance: Tensor) -> Tensor:
        floor = VARIANCE_FLOOR * self.places.conditioned.prior_variance[..., None, None]
        return variance.clamp_min(floor)


def _stacked(met: list[Tensor], like: Tensor) -> Tensor:
    """Indices `b x k x s x (rivals met)`, also if there are none."""
    empty = torch.empty(*like.shape, 0, dtype=torch.long)
    return torch.cat([empty, *(index[..., None] for index in met)], dim=-1)


@torch.no_grad()
def peak_at(conditioned: Conditioned, rivals: Rivals, x_star: Tensor) -> Peak:
    """The posterior given a local maximum at x_star, `b x s x d`."""
    kernel, rough = conditioned.prior.kernel, conditioned.roughness
    s, d = x_star.shape[1:]
    at_star = conditioned.moments(x_star)
    inside = ((x_star > BOUNDARY) & (x_star < 1.0 - BOUNDARY))[:, None].to(x_star.dtype)

    # First and second derivatives at x*, coordinate by coordinate, given the data.
    slope_kernel, curve_kernel = conditioned.derivative_kernels(conditioned.V, at_star.V)
    shape = slope_kernel.shape  # b x k x n x s x d
    slope_kernel, curve_kernel = slope_kernel.flatten(3), curve_kernel.flatten(3)
    a = conditioned.coefficients[:, :, None]  # b x k x 1 x n
    slope_mean, curve_mean = (
        (a @ t).reshape(*shape[:2], s, d) for t in (slope_kernel, curve_kernel)
    )
    white_slope = (conditioned.whitener @ slope_kernel).reshape(shape)
    white = torch.cat([white_slope, at_star.whitened[..., None]], dim=-1)
    curves = torch.matmul(conditioned.whitener, curve_kernel, out=slope_kernel).reshape(shape)
    # By place, b x k x s x n x (d + 1) and x d: products with slopes and, last, with f.
    by_place = white.transpose(2, 3).contiguous()
    explained = by_place.mT @ by_place  # b x k x s x (d + 1) x (d + 1)
    curve_explained = curves.transpose(2, 3).contiguous().mT @ by_place  # b x k x s x d x (d + 1)
    signal = conditioned.signal
    zero = torch.zeros_like(signal)
    slope_prior = signal * radial_slope(kernel, zero, rough)  # b x k x 1 x 1
    curve_prior = 3.0 * signal * radial_curvature(kernel, zero, rough)
    eye = torch.eye(d, dtype=x_star.dtype)
    S = slope_prior[..., None] * (1.0 + GRADIENT_SLACK) * eye - explained[..., :d, :d]
    curve_variance = curve_prior - curves.square().sum(2)
    curve_star = -slope_prior - curve_explained[..., d]
    star_slope = -explained[..., d:, :d]  # b x k x s x 1 x d; k(x*, grad x*) = 0
    curve_slope = -curve_explained[..., :d]  # b x k x s x d x d

    # Coordinates on a face drop out: identity block, no covariance, no residual.
    S = S * inside[..., :, None] * inside[..., None, :]
    L = linalg.cholesky(S + torch.diag_embed((1.0 - inside).expand_as(slope_mean)))
    W: Tensor = torch.linalg.solve_triangular(L, eye.expand_as(S), upper=False)
    W = W * inside[..., None, :]

    places = Places(conditioned, x_star, at_star, white, by_place)
    raw = places.covariance(rivals.moments)
    rival_rows, star_rows = raw[..., :d] @ W.mT, (star_slope @ W.mT).squeeze(-2)
    curve_rows = curve_slope @ W.mT
    pull = -(W @ slope_mean[..., None]).squeeze(-1)
    # A density in the coordinates of the cube: that of scaled ones times the volume they take.
    stretch = conditioned.log_stretch(x_star)
    log_flat = log_normal(pull).sum(-1) - L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    log_flat = log_flat + (stretch * inside).sum(-1)
    floor = VARIANCE_FLOOR * conditioned.prior_variance[..., None]
    return Peak(
        places=places,
        rivals=rivals,
        inside=inside,
        log_flat=log_flat,
        curvature=curve_mean + (curve_rows * pull[..., None, :]).sum(-1),
        curvature_variance=(curve_variance - curve_rows.square().sum(-1)).clamp_min(
            VARIANCE_FLOOR * curve_prior
        ),
        curvature_covariance=curve_star - (curve_rows * star_rows[..., None, :]).sum(-1),
        star_mean=at_star.mean + (star_rows * pull).sum(-1),
        star_variance=(at_star.variance - star_rows.square().sum(-1)).clamp_min(floor),
        star_rows=star_rows,
        rival_mean=rivals.moments.mean[:, :, None] + (rival_rows @ pull[..., None]).squeeze(-1),
        rival_variance=rivals.moments.variance[:, :, None] - rival_rows.square().sum(-1),
        rival_rows=rival_rows,
        rival_star=raw[..., d] - (rival_rows @ star_rows[..., None]).squeeze(-1),
        mix=torch.nn.functional.pad(W, (0, 2)),
        pull=pull,
        met=[],
    )
