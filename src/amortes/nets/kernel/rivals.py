"""Rivals of the optimum: points that may be the maximum instead.

Shapes: b datasets, k particles, m rivals, n observations, d dimensions.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from amortes.nets.kernel.conditioning import Moments


@dataclass(frozen=True)
class Rivals:
    """Points that may be the maximum, the posterior of f there, and of its maximum."""

    X: Tensor  # b x m x d
    moments: Moments  # b x k x m
    covariance: Tensor  # b x k x m x m
    share: Tensor  # b x k x m, probability that this rival is the highest
    highest: Tensor  # b x k, mean of the maximum
    unexplained: Tensor  # b x k, variance of the maximum that sum_m share_m f(m) does not have

    def take(self, index: Tensor) -> "Rivals":
        """Those with indices `b x count` only; their shares are scaled up to one."""
        rows = torch.arange(len(index))[:, None]
        at = self.moments
        k, n = at.whitened.shape[1:3]
        by_particle = index[:, None].expand(-1, k, -1)
        by_row = index[:, None, None].expand(-1, k, n, -1)
        square = self.covariance.gather(
            2, by_particle[..., None].expand(-1, -1, -1, self.X.shape[1])
        )
        share = self.share.gather(2, by_particle)
        return Rivals(
            X=self.X[rows, index],
            moments=Moments(
                at.mean.gather(2, by_particle),
                at.variance.gather(2, by_particle),
                at.whitened.gather(3, by_row),
                at.V.gather(2, by_particle[..., None].expand(-1, -1, -1, self.X.shape[-1])),
            ),
            covariance=square.gather(3, by_particle[:, :, None].expand(-1, -1, index.shape[1], -1)),
            share=share / share.sum(-1, keepdim=True).clamp_min(1e-3),
            highest=self.highest,
            unexplained=self.unexplained,
        )
