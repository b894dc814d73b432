"""Where the points of a training dataset lie: synthetic optimisation traces.

Networks that choose experiments are used on data gathered by an optimiser, which are clustered
around good points. Algorithm 1 of the paper imitates that: a trace mixes global points, part of
them clipped to the faces of the cube, with local steps around the best point so far. Per dataset,

    eps = 1 - u^(d/6),    step ~ LogNormal(-3, 0.5),
    P(local) rises linearly over the trace, from the smallest to the largest of three uniforms;
    global point   clip(Uniform(-eps/2, 1 + eps/2)^d, 0, 1)
    local point    clip(Normal(centre, step^2), 0, 1)

For the context the centre is the best observation so far; for queries it is a random context
point or, with probability `optimum_share`, the maximiser. No point occurs twice in a dataset.
The `uniform` kind (the paper's ablation) draws all points uniformly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from amortes.errors import ConfigError

# Clipping sends many points to the same corner, above all for d = 1; then draw again, and after
# so many attempts draw from the interior, where two points never coincide.
RESAMPLING_ATTEMPTS = 8
DTYPE = torch.float32  # that of paths, whatever torch's default is


@dataclass(frozen=True, kw_only=True)
class TraceConfig:
    """How points are placed."""

    kind: Literal["clustered", "uniform"] = "clustered"
    optimum_share: float = 0.2

    def __post_init__(self) -> None:
        if self.kind not in ("clustered", "uniform"):
            raise ConfigError(f"kind: must be 'clustered' or 'uniform', not {self.kind!r}.")
        if not 0.0 <= self.optimum_share <= 1.0:
            raise ConfigError(f"optimum_share: must be in [0, 1], not {self.optimum_share}.")


class Tracer:
    """Draws the points of b datasets in dimension d; one instance per batch of datasets."""

    def __init__(self, b: int, d: int, config: TraceConfig, rng: torch.Generator) -> None:
        self.b, self.d, self.config, self.rng = b, d, config, rng
        self.margin = 1.0 - self._uniform(1, 1) ** (d / 6)  # b x 1 x 1
        self.step = (-3.0 + 0.5 * self._normal(1, 1)).exp()  # b x 1 x 1
        thirds = self._uniform(3)
        self.local_low, self.local_high = thirds.amin(1, keepdim=True), thirds.amax(1, keepdim=True)

    def context(
        self, count: int, total: int, observe: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The first `count` of `total` points and their observations: `b x n x d` and `b x n`.

        `observe` maps one point per dataset, `b x 1 x d`, to a noisy value, `b x 1`.
        """
        outer = self._outer(count)
        local = self._local(0, count, total)
        noise = self._normal(count, self.d)
        X, y = outer.new_empty(self.b, count, self.d), outer.new_empty(self.b, count)
        best_x, best_y = outer[:, :1], outer.new_full((self.b, 1), -torch.inf)
        local[:, 0] = False  # there is nothing to be near yet
        for i in range(count):
            near = (best_x + self.step * noise[:, i : i + 1]).clamp(0.0, 1.0)
            x = torch.where(local[:, i, None, None], near, outer[:, i : i + 1])
            x = self._distinct(x, X[:, :i], best_x, local[:, i : i + 1])
            value = observe(x)
            X[:, i : i + 1], y[:, i : i + 1] = x, value
            better = value > best_y
            best_x = torch.where(better[..., None], x, best_x)
            best_y = torch.where(better, value, best_y)
        return X, y

    def queries(self, count: int, total: int, X: Tensor, x_star: Tensor) -> tuple[Tensor, Tensor]:
        """The last `count` of `total` points, given context and maximiser.

        Returns the points, `b x count x d`, and which of them were placed by looking at the
        maximiser, `b x count`.
        """
        n = X.shape[1]
        pick = torch.randint(n, (self.b, count, 1), generator=self.rng)
        centre = X.gather(1, pick.expand(-1, -1, self.d))
        at_star = self._uniform(count) < self.config.optimum_share
        centre = torch.where(at_star[..., None], x_star[:, None], centre)
        local = self._local(total - count, count, total)
        near = (centre + self.step * self._normal(count, self.d)).clamp(0.0, 1.0)
        Xq = torch.where(local[..., None], near, self._outer(count))
        return self._distinct(Xq, X, centre, local), local & at_star

    def _distinct(self, x: Tensor, earlier: Tensor, centre: Tensor, local: Tensor) -> Tensor:
        """Redraw those of the points x (`b x k x d`) that equal an earlier one or each other."""
        for attempt in range(RESAMPLING_ATTEMPTS + 1):
            repeated = _repeats(x, earlier)
            if not repeated.any():
                break
            if attempt < RESAMPLING_ATTEMPTS:
                near = (centre + self.step * self._normal(x.shape[1], self.d)).clamp(0.0, 1.0)
                fresh = torch.where(local[..., None], near, self._outer(x.shape[1]))
            else:
                fresh = self._uniform(x.shape[1], self.d)
            x = torch.where(repeated[..., None], fresh, x)
        return x

    def _outer(self, count: int) -> Tensor:
        U = self._uniform(count, self.d)
        if self.config.kind == "uniform":
            return U
        return ((1.0 + self.margin) * U - 0.5 * self.margin).clamp(0.0, 1.0)

    def _local(self, start: int, count: int, total: int) -> Tensor:
        """Which of the points start, ..., start + count - 1 are local: `b x count`, bool."""
        if self.config.kind == "uniform":
            return torch.zeros(self.b, count, dtype=torch.bool)
        progress = torch.arange(start, start + count, dtype=DTYPE) / max(1, total - 1)
        share = self.local_low + (self.local_high - self.local_low) * progress
        return self._uniform(count) < share

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(self.b, *shape, generator=self.rng, dtype=DTYPE)

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(self.b, *shape, generator=self.rng, dtype=DTYPE)


def _repeats(x: Tensor, earlier: Tensor) -> Tensor:
    """Which of `b x k x d` equal one of `b x n x d`, or a predecessor among themselves: `b x k`."""
    old = (x[:, :, None] == earlier[:, None]).all(-1).any(-1)
    twin = (x[:, :, None] == x[:, None]).all(-1).tril(-1).any(-1)
    return old | twin
