"""The learned part of the base network: what the closed form gets wrong about a hint.

Without a hint the mixture over particles is exact, up to their number, and nothing is learned. With
one, the closed-form start (`hints`) knows f <= f* at the query and at a few rivals only, and not
all that the hint says about hyperparameters. A perceptron sees some thirty normalised features of
each Gaussian of the start and a summary over all of a query's, and splits it into two,

    weight   log w + log evidence + g_a a_j
    mean     m' + s' g_b b_j
    sd       s' exp(g_c c_j), then the particle's noise is added.

The gates g = 1 - exp(-κ KL(start || posterior without the hint)) vanish where the hint changes
nothing. An information gain is a difference of two entropies, and without them small errors of
both would hide it wherever it is small.
"""

import torch
from torch import Tensor, nn

from amortes.nets.base import Hint
from amortes.nets.distributions import GaussianMixture
from amortes.nets.distributions.normal import log_sum_exp
from amortes.nets.kernel.conditioning import Conditioned, Moments
from amortes.nets.kernel.hints import Start
from amortes.nets.kernel.landmarks import Landmarks
from amortes.nets.kernel.peak import BOUNDARY

NUM_FEATURES = 29
SPLITS = 2
"""Gaussians that each one of the start becomes."""
# Width added to a density of f*, so that a certain point does not exclude every other value.
SMOOTHING = 0.05


class Correction(nn.Module):
    """Features of Gaussians -> weight, shift and log scale of each of their `SPLITS` parts."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Linear(NUM_FEATURES, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.own = nn.Linear(width, width)
        self.shared = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, 3 * SPLITS)
        self.log_rate = nn.Parameter(torch.full((3,), 1.5))  # log κ of the three gates
        # Almost the closed form; not exactly, so that the parts can part.
        nn.init.normal_(self.out.weight, std=0.02)
        nn.init.zeros_(self.out.bias)

    def forward(
        self, features: Tensor, weights: Tensor, divergence: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Features `b x k x q x J x F`, weights and divergence `b x k x q x J`.

        Three results, `b x k x q x J x SPLITS`.
        """
        dtype = self.own.weight.dtype
        features, weights, divergence = (t.to(dtype) for t in (features, weights, divergence))
        h = self.encode(features)
        pooled = (weights[..., None] * h).sum((1, 3), keepdim=True)  # b x 1 x q x 1 x width
        h = nn.functional.silu(self.own(h) + self.shared(pooled))
        gates = -torch.expm1(-self.log_rate.exp() * divergence[..., None])  # b x k x q x J x 3
        parts = self.out(h).unflatten(-1, (3, SPLITS)) * gates[..., None]
        logit, shift, log_scale = parts.unbind(-2)
        return 4.0 * logit, shift, log_scale.clamp(-5.0, 3.0)


def correct(
    correction: Correction,
    conditioned: Conditioned,
    at_q: Moments,
    start: Start,
    hint: Hint,
    landmarks: Landmarks,
) -> tuple[Tensor, Tensor, Tensor]:
    """Log weights, means and sds of f(x): `b x k x q x (J * SPLITS)`."""
    mean, sd = start.mean, start.sd
    log_weights = conditioned.particles.log_weights[..., None, None]
    logits = (log_weights + start.log_evidence).expand_as(mean)
    spread = sd / at_q.sd[..., None]
    moved = (mean - at_q.mean[..., None]) / at_q.sd[..., None]
    divergence = 0.5 * (spread.square() + moved.square() - 1.0) - spread.log()
    everything = logits.movedim(1, 2)  # b x q x k x J
    weights = everything.flatten(2).softmax(-1).reshape(everything.shape).movedim(2, 1)
    inputs = features(conditioned, at_q, start, hint, landmarks)
    a, b, c = correction(inputs, weights, divergence.clamp_min(0.0))
    split = (
        logits[..., None] + a.to(mean.dtype),
        mean[..., None] + sd[..., None] * b.to(mean.dtype),
        sd[..., None] * c.to(mean.dtype).exp(),
    )
    return split[0].flatten(-2), split[1].flatten(-2), split[2].flatten(-2)


def features(
    conditioned: Conditioned, at_q: Moments, start: Start, hint: Hint, landmarks: Landmarks
) -> Tensor:
    """What the correction sees, `b x k x q x J x F`, all of order one."""
    hyper, particles = conditioned.particles.hyper, conditioned.particles
    weights = conditioned.weights[..., None, None]
    best = best_mean(conditioned)[..., None]
    q_mean, q_sd = at_q.mean[..., None], at_q.sd[..., None]
    noise = conditioned.noise_variance[..., None, None]
    k = particles.log_weights.shape[1]

    def average(t: Tensor) -> Tensor:
        return (weights * t).sum(1, keepdim=True)

    def relative(t: Tensor) -> Tensor:  # to the average particle
        return (t - average(t)).asinh()

    def constant(value: float) -> Tensor:
        return torch.tensor(value, dtype=q_mean.dtype)

    evidence = start.log_evidence.logsumexp(-1, keepdim=True)  # b x k x 1 x 1
    n, d = conditioned.num_observed, conditioned.X.shape[-1]
    columns = [
        q_mean - best,
        ((q_mean - best) / q_sd).asinh(),
        q_sd.log(),
        noise.log() / 2,
        (q_sd.square() / noise).log() / 2,
        particles.log_weights[..., None, None] + constant(float(k)).log(),
        constant(float(n)).log(),
        constant(float(d)).log(),
        hyper.lengthscale.log().mean(-1)[..., None, None],
        ((start.mean - q_mean) / q_sd).asinh(),
        (start.sd / q_sd).log(),
        start.truncation.asinh(),
        relative(evidence),
        average(evidence).asinh(),  # whether the hint was to be expected
        start.log_evidence - evidence,
        start.correlation,
        (1e-4 + start.distance).log() / 2,
        start.star_sd.log(),
        ((start.star_mean - best) / start.star_sd).asinh(),
        start.explained.clamp_min(-10.0),
        relative(start.log_flat),
        constant(float(hint.x is not None)),
        constant(float(hint.f is not None)),
        landmarks.maximum.std(-1)[..., None, None].add(1e-4).log(),
    ]
    if hint.f is None:
        columns += [constant(0.0)] * 4
    else:
        f = hint.f[:, None, None, None]
        here = _log_density(f, q_mean, at_q.variance[..., None])
        moments = landmarks.moments
        at_landmarks = _log_density(f[..., 0], moments.mean, moments.variance)
        elsewhere = log_sum_exp(at_landmarks)[..., None, None]
        columns += [
            f - best,
            ((f - q_mean) / q_sd).asinh(),
            (here - elsewhere).asinh(),
            relative(elsewhere),
        ]
    if hint.x is None:
        columns += [constant(0.0)]
    else:
        inside = ((hint.x > BOUNDARY) & (hint.x < 1.0 - BOUNDARY)).to(q_mean.dtype)
        columns += [inside.mean(-1)[:, None, None, None]]
    like = start.mean
    return torch.stack([c.to(like.dtype).expand_as(like) for c in columns], dim=-1)


def _log_density(f: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Log density of f(x) = f* under each particle, smoothed."""
    variance = variance + SMOOTHING**2
    return -0.5 * ((f - mean).square() / variance + variance.log())


def best_mean(conditioned: Conditioned) -> Tensor:
    """Highest posterior mean at an observed point, under each particle: `b x k x 1`."""
    return conditioned.observed_mean.amax(-1, keepdim=True)


def mixture(
    conditioned: Conditioned, logits: Tensor, mean: Tensor, sd: Tensor, dtype: torch.dtype
) -> GaussianMixture:
    """Distribution of y from Gaussians for f, `b x k x q x J`: k J Gaussians per query."""
    noise = conditioned.noise_variance[..., None, None]
    total = (sd.square() + noise).sqrt()

    def flat(t: Tensor) -> Tensor:  # b x k x q x J -> b x q x kJ
        return t.expand_as(total).permute(0, 2, 1, 3).flatten(2).to(dtype)

    return GaussianMixture(flat(logits), flat(mean), flat(total))
