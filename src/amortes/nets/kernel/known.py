"""What is known of f at queries, once a maximum at x* has been digested (by `peak`).

Everything known is linear in a few directions of f, kept as r rows,

    mean(x) = m(x) + row(x) . pull,    variance(x) = v(x) - |row(x)|^2,

each a combination (`mix`) of the posterior covariances of f(x) with its slopes at x*, with f(x*),
with the maximum and with the rivals met. So a query costs one small matrix product.

Shapes: b datasets, k particles, s places, m rivals, q queries, d dimensions.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from amortes.nets.kernel.below import below
from amortes.nets.kernel.conditioning import Conditioned, Moments


@dataclass(frozen=True)
class Places:
    """s places x* of each dataset, and what covariances with f and its slopes there need."""

    conditioned: Conditioned
    x: Tensor  # b x s x d
    moments: Moments  # b x k x s
    white: Tensor  # b x k x n x s x (d + 1), whitened covariances of slopes and f with the data
    white_by_place: Tensor  # b x k x s x n x (d + 1), the same in another order

    def covariance(self, at: Moments) -> Tensor:
        """Of f at q points with the slopes and f at x*: `b x k x s x q x (d + 1)`."""
        slopes = self.conditioned.slope_kernel(at.V, self.moments.V)
        value = self.conditioned.kernel(at.V, self.moments.V)
        prior = torch.cat([slopes, value[..., None]], dim=-1)
        explained = (at.whitened.mT @ self.white.flatten(3)).reshape(prior.shape)
        return (prior - explained).transpose(2, 3)


@dataclass(frozen=True)
class Known:
    """What is known given the maximum at each of s places; see the module's docstring."""

    mix: Tensor  # b x k x s x r x (d + 2 + rivals met)
    pull: Tensor  # b x k x s x r
    star_rows: Tensor  # b x k x s x r
    star_mean: Tensor  # b x k x s
    star_variance: Tensor  # b x k x s
    share: Tensor  # b x k x m
    floor: Tensor  # b x k x 1 x 1, of variances
    met: Tensor  # b x k x s x (rivals met), indices

    def rows(self, raw: Tensor, cross: Tensor) -> Tensor:
        """The rows at q queries: `b x k x s x q x r`.

        `raw` are covariances with slopes and values at x*, from `Places.covariance`, and `cross`,
        `b x k x q x m`, those with rivals.
        """
        q, s = cross.shape[2], raw.shape[2]
        maximum = (cross @ self.share[..., None])[:, :, None].expand(-1, -1, s, -1, -1)
        index = self.met[:, :, :, None].expand(-1, -1, -1, q, -1)
        rivals = cross[:, :, None].expand(-1, -1, s, -1, -1).gather(4, index)
        return torch.cat([raw, maximum, rivals], dim=-1) @ self.mix.mT

    def below(
        self, mean: Tensor, variance: Tensor, rows: Tensor, with_star: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance of f(x) given all, and that f(x) <= f(x*), at the queries.

        Given mean and variance before, `b x k x q`, rows, and covariances with f(x*) before,
        `b x k x s x q`. Also the standardised gap f(x*) - f(x) before the last truncation.
        """
        along = rows @ torch.stack([self.pull, self.star_rows], dim=-1)  # b x k x s x q x 2
        mean = mean[:, :, None] + along[..., 0]
        variance = (variance[:, :, None] - rows.square().sum(-1)).clamp_min(self.floor)
        star = self.star_mean[..., None], self.star_variance[..., None]
        return below(mean, variance, with_star - along[..., 1], *star, self.floor)
