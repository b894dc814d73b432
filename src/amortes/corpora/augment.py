"""Symmetries of the prior: mirror and reorder the axes of the cube.

Both leave the distribution of functions unchanged, so every stored path with a known maximum
stands for 2^d d! of them. The map must be applied to the path, its maximiser and its
lengthscales alike; points drawn afterwards live in the new coordinates.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from amortes.prior.gp import Hyperparameters
from amortes.prior.paths import Paths
from amortes.prior.warp import mirrored


@dataclass(frozen=True)
class Symmetry:
    """New coordinates x'_k = x_{order_k}, then 1 - x'_k where mirrored; one map per path."""

    order: Tensor  # b x d, a permutation of 0..d-1
    mirror: Tensor  # b x d, bool

    @classmethod
    def random(cls, b: int, d: int, rng: torch.Generator) -> "Symmetry":
        """One uniformly random symmetry of the cube for each of b paths."""
        key, coin = (torch.rand(b, d, generator=rng, dtype=torch.float32) for _ in range(2))
        return cls(key.argsort(dim=1), coin < 0.5)

    def points(self, x: Tensor) -> Tensor:
        """Map points `b x d` to the new coordinates."""
        moved = x.gather(1, self.order)
        return torch.where(self.mirror, 1.0 - moved, moved)

    def paths(self, paths: Paths) -> Paths:
        """The functions g with g(points(x)) = f(x)."""
        return paths.permuted(self.order).reflected(self.mirror)

    def hyperparameters(self, hyper: Hyperparameters) -> Hyperparameters:
        """Hyperparameters of the mapped functions: lengthscales and warps follow their axes."""
        warp = hyper.warp
        if warp is not None:
            warp = mirrored(warp.gather(2, self.order[:, None].expand(-1, 2, -1)), self.mirror)
        return replace(hyper, lengthscale=hyper.lengthscale.gather(1, self.order), warp=warp)
