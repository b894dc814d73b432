"""The learned part of the base network: a small correction per particle.

The closed-form start (`hints`) is exact without a hint, up to the finite number of particles, and a
textbook approximation with one. What it cannot know is the global constraint f <= f* and what the
hint says about hyperparameters. A perceptron sees about two dozen normalised features of each
(particle, query) and a summary over particles, and turns each particle's Gaussian into J Gaussians

    weight   log w + log evidence + a_j
    mean     m' + s' b_j
    sd       s' exp(c_j), then the particle's noise is added.

Untrained, a, b and c are almost zero: the closed form.
"""

import torch
from torch import Tensor, nn

from amortes.nets.base import Hint
from amortes.nets.distributions import GaussianMixture
from amortes.nets.kernel.conditioning import Conditioned, Moments
from amortes.nets.kernel.hints import BOUNDARY, Start
from amortes.nets.kernel.landmarks import Landmarks
from amortes.prior.kernels import scaled_square_distance

NUM_FEATURES = 26


class Correction(nn.Module):
    """Features -> J (weight, shift, log scale) per particle and query."""

    def __init__(self, width: int, components: int) -> None:
        super().__init__()
        self.components = components
        self.encode = nn.Sequential(
            nn.Linear(NUM_FEATURES, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.own = nn.Linear(width, width)
        self.shared = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, 3 * components)
        # Almost the closed form; not exactly, so that the J components can part.
        nn.init.normal_(self.out.weight, std=0.02)
        nn.init.zeros_(self.out.bias)

    def forward(self, features: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Features `b x k x q x F`, weights `b x k x q`: three `b x k x q x J`."""
        h = self.encode(features)
        pooled = (weights[..., None] * h).sum(1, keepdim=True)  # b x 1 x q x width
        h = nn.functional.silu(self.own(h) + self.shared(pooled))
        logit, shift, log_scale = self.out(h).chunk(3, dim=-1)
        return 4.0 * logit, shift, log_scale.clamp(-5.0, 3.0)


# Width added to a density of f*, so that a certain point does not exclude every other value.
SMOOTHING = 0.05


def features(
    conditioned: Conditioned,
    Xq: Tensor,
    at_q: Moments,
    start: Start,
    hint: Hint | None,
    landmarks: Landmarks | None,
) -> Tensor:
    """What the correction sees, `b x k x q x F` float32, all of order one.

    Landmarks are needed when f* is known: they say where else it could be attained.
    """
    hint = hint or Hint()
    hyper = conditioned.particles.hyper
    k = at_q.mean.shape[1]
    zero = torch.zeros_like(at_q.mean)
    best = best_mean(conditioned)
    weights = conditioned.particles.log_weights.exp()[..., None]

    def relative(t: Tensor) -> Tensor:  # to the average particle
        return (t - (weights * t).sum(1, keepdim=True)).asinh()

    has_x, has_f = float(hint.x is not None), float(hint.f is not None)
    columns = [
        at_q.mean - best,
        ((at_q.mean - best) / at_q.sd).asinh(),
        at_q.sd.log(),
        conditioned.noise_variance[..., None].log() / 2,
        (at_q.variance / conditioned.noise_variance[..., None]).log() / 2,
        conditioned.particles.log_weights[..., None] + torch.tensor(float(k)).log(),
        torch.tensor(float(conditioned.num_observed)).log(),
        torch.tensor(float(conditioned.X.shape[-1])).log(),
        hyper.lengthscale.log().mean(-1)[..., None],
        ((start.mean - at_q.mean) / at_q.sd).asinh(),
        (start.sd / at_q.sd).log(),
        start.truncation.asinh(),
        relative(start.log_evidence),
        torch.tensor(has_x),
        torch.tensor(has_f),
    ]
    if hint.f is None or landmarks is None:
        columns += [zero] * 4
    else:
        f = hint.f[:, None, None]
        here = _log_density(f, at_q)
        elsewhere = _log_density(f, landmarks.moments).logsumexp(-1, keepdim=True)
        columns += [
            f - best,
            ((f - at_q.mean) / at_q.sd).asinh(),
            (here - elsewhere).asinh(),
            relative(elsewhere),
        ]
    if hint.x is None:
        columns += [zero] * 7
    else:
        x = hint.x[:, None]
        distance = scaled_square_distance(Xq[:, None], x[:, None], hyper.lengthscale).squeeze(-1)
        interior = ((hint.x > BOUNDARY) & (hint.x < 1.0 - BOUNDARY)).to(zero.dtype).mean(-1)
        columns += [
            start.correlation,
            (1e-4 + distance).log() / 2,
            start.star_sd.log(),
            ((start.star_mean - best) / start.star_sd).asinh(),
            start.explained.clamp_min(-10.0),
            interior[:, None, None],
            relative(start.log_flat),
        ]
    return torch.stack([c.to(zero.dtype).expand_as(zero) for c in columns], dim=-1).float()


def _log_density(f: Tensor, at: Moments) -> Tensor:
    """Log density of f(x) = f* under each particle, smoothed: `b x k x q`."""
    variance = at.variance + SMOOTHING**2
    return -0.5 * ((f - at.mean).square() / variance + variance.log())


def best_mean(conditioned: Conditioned) -> Tensor:
    """Highest posterior mean at an observed point, under each particle: `b x k x 1`."""
    # m(X) = y - s^2 a, because (K + s^2 I) a is the residual.
    a = conditioned.coefficients[..., : conditioned.num_observed]
    fitted = conditioned.y[:, None] - conditioned.noise_variance[..., None] * a
    return fitted.amax(-1, keepdim=True)


def mixture(
    conditioned: Conditioned,
    start: Start,
    correction: tuple[Tensor, Tensor, Tensor] | None,
    dtype: torch.dtype,
) -> GaussianMixture:
    """Distribution of y: k Gaussians per query for the closed form, k J with the correction."""
    logits = (conditioned.particles.log_weights[..., None] + start.log_evidence)[..., None]
    mean, sd = start.mean[..., None], start.sd[..., None]
    noise = conditioned.noise_variance[..., None, None]
    if correction is not None:
        a, b, c = (t.to(mean.dtype) for t in correction)
        logits, mean, sd = logits + a, mean + sd * b, sd * c.exp()
    total = (sd.square() + noise).sqrt()

    def flat(t: Tensor) -> Tensor:  # b x k x q x J -> b x q x kJ
        return t.expand_as(total).permute(0, 2, 1, 3).flatten(2).to(dtype)

    return GaussianMixture(flat(logits), flat(mean), flat(total))
