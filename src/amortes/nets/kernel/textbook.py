"""Textbook gains: each particle by itself, one draw of the optimum at a time, no zero gradient.

    PES  f(x) <= f(x*)                  a truncated difference of two Gaussians
    MES  f(x) <= f*                     a truncated Gaussian
    JES  f(x*) = f*, then f(x) <= f*    a regression, then a truncated Gaussian

Conditional distributions are matched by Gaussians. They do not see what a query says about
hyperparameters, but average over many more draws than `sketch`, so vary smoothly.

References: Hernandez-Lobato et al., NeurIPS 2014 (PES); Wang & Jegelka, ICML 2017 (MES); Hvarfner
et al., NeurIPS 2022 (JES).
"""

import torch
from torch import Tensor

from amortes.nets.distributions.normal import cut_off
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned, Moments
from amortes.nets.kernel.landmarks import Landmarks

# Gains vary less between draws than between particles.
DRAWS = 4
# Variance of the gap between f(x*) and f(x) at least, relative to the prior variance.
CUSP = 1e-4


def textbook_gains(
    conditioned: Conditioned, landmarks: Landmarks, at_q: Moments, cross: Tensor
) -> Tensor:
    """Estimates of the PES, MES and JES gains at q queries: `b x q x 3`, all >= 0.

    `cross` is the posterior covariance of queries and landmarks, `b x k x q x m`. Conditional
    distributions are matched by a Gaussian, and gains averaged over particles and draws.
    """
    q = at_q.mean.shape[-1]
    floor = VARIANCE_FLOOR * conditioned.prior_variance[..., None, None]
    place = landmarks.place[..., :DRAWS]  # b x k x s
    star_mean, star_variance = (t[:, :, None] for t in landmarks.at_place(place))  # b x k x 1 x s
    c = cross.gather(3, place[:, :, None].expand(-1, -1, q, -1))  # b x k x q x s
    mean, variance = at_q.mean[..., None], at_q.variance[..., None]
    value = landmarks.maximum[:, :, None, :DRAWS]
    noise = conditioned.noise_variance[..., None, None]

    # Without the slack PES would have a cusp at every place.
    slack = CUSP * conditioned.prior_variance[..., None, None]
    gap_variance = (variance + star_variance - 2.0 * c).clamp_min(floor) + slack
    regression = c / star_variance
    conditional = (variance - regression * c).clamp_min(floor)
    given_value = mean + regression * (value - star_mean)
    bounds = torch.stack(
        [
            (star_mean - mean) / gap_variance.sqrt(),
            (value - mean) / variance.sqrt(),
            (value - given_value) / conditional.sqrt(),
        ]
    )
    _, _, width = cut_off(bounds)  # 3 x b x k x q x s
    explained = (c - variance).square() / gap_variance
    remaining = torch.stack(
        [variance - explained * (1.0 - width[0]), variance * width[1], conditional * width[2]]
    ).clamp_min(0.0)
    gains = 0.5 * ((variance + noise) / (remaining + noise)).log()
    w = conditioned.particles.log_weights.exp()[..., None]
    return (w * gains.mean(-1)).sum(2).clamp_min(0.0).movedim(0, -1)
