"""The global maximum of a sample path on the unit cube, in about a millisecond.

A path has closed-form gradients and Hessians, so a multistart Newton method replaces the paper's
ensemble of first-order optimisers (`amortes.bench.maximisers.ensemble`):

1. evaluate a fixed low-discrepancy set of points, stretched so that many are clipped to faces and
   corners, because that is where the maxima of smooth functions on a cube tend to be;
2. coarse: from the best of them, projected Newton steps with the diagonal of the Hessian;
3. fine: from the best of those, projected Newton steps with the whole Hessian; half-way only the
   best few go on.

Projected means: coordinates held at a bound by the gradient go there, the rest step along
|H|^-1 g (absolute eigenvalues, Levenberg damping, no coordinate moves more than `max_step`) and
are clipped to the cube. A step is kept if the value does not fall; damping shrinks on success and
grows on failure.

Deterministic: no random numbers; the same path gives the same maximum.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes.errors import ConfigError
from amortes.prior.paths import Paths
from amortes.prior.warp import unwarp

Evaluation = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
"""Values `b x s`, gradients `b x s x d` and curvature at points `b x s x d`."""
Direction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""A step `b x s x d` from gradient, curvature, mask of the free coordinates, and damping."""

# A coordinate this close to a bound is held there by the gradient: a step that is cut short by the
# bound would be wrong for the others (Bertsekas, 1982, SIAM J. Control Optim. 20).
EDGE = 1e-6


@dataclass(frozen=True)
class Optimum:
    """Global maximisers and maxima of a batch of functions."""

    x: Tensor  # b x d
    f: Tensor  # b


@dataclass(frozen=True, kw_only=True)
class NewtonConfig:
    """Budget of the search. The defaults and `for_dim` were measured: docs/log.md, 2026-11-15."""

    num_points: int = 512
    coarse_starts: int = 32
    coarse_steps: int = 8
    fine_starts: int = 4
    fine_steps: int = 12
    survivors: int = 2
    max_step: float = 0.3

    def __post_init__(self) -> None:
        for field, value in vars(self).items():
            if value <= 0:
                raise ConfigError(f"{field}: must be positive, not {value}.")
        if not self.survivors <= self.fine_starts <= self.coarse_starts <= self.num_points:
            raise ConfigError(
                "need survivors <= fine_starts <= coarse_starts <= num_points, not "
                f"{self.survivors}, {self.fine_starts}, {self.coarse_starts}, {self.num_points}."
            )

    @classmethod
    def for_dim(cls, d: int, budget: int = 1) -> "NewtonConfig":
        """The default search in dimension `d`; with `budget` times as many points and starts."""
        starts, steps, fine, fine_steps, kept = (32, 8, 4, 12, 2) if d <= 6 else (64, 16, 8, 24, 3)
        return cls(
            num_points=512 * budget,
            coarse_starts=starts * budget,
            coarse_steps=steps,
            fine_starts=fine * budget,
            fine_steps=fine_steps,
            survivors=kept * budget,
        )


def maximise_paths(paths: Paths, config: NewtonConfig | None = None) -> Optimum:
    """Global maximum of each of the b paths over the unit cube, in the dtype of the paths.

    A warp maps the cube onto itself: a warped path is maximised in warped coordinates.
    """
    if paths.warp is not None:
        found = maximise_paths(paths.stationary, config)
        return Optimum(unwarp(found.x[:, None], paths.warp).squeeze(1), found.f)
    config = config or NewtonConfig.for_dim(paths.d)
    points = starting_points(paths.d, config.num_points).to(paths.dtype)
    # Paths per group: their features with the products of these, and the angles at all starts,
    # stay in the cache together.
    per_feature = max((paths.d + 1) * (paths.d + 4), 2 * config.coarse_starts)
    group = max(1, (1 << 20) // (paths.phases.shape[1] * per_feature))
    parts = [_maximise(paths[i : i + group], points, config) for i in range(0, paths.b, group)]
    return Optimum(torch.cat([p.x for p in parts]), torch.cat([p.f for p in parts]))


@lru_cache(maxsize=64)
def starting_points(d: int, count: int) -> Tensor:
    """`count x d` float64 points; each is stretched about the centre, then clipped to the cube."""
    sobol: Any = SobolEngine
    U: Tensor = sobol(d + 1, scramble=True, seed=0).draw(count, dtype=torch.float64)
    stretch = 1.0 + 1.5 * U[:, -1:]
    return (0.5 + stretch * (U[:, :-1] - 0.5)).clamp(0.0, 1.0)


def _maximise(paths: Paths, points: Tensor, config: NewtonConfig) -> Optimum:
    values = paths(points.expand(paths.b, -1, -1))  # b x points
    x = points[values.topk(config.coarse_starts, dim=1).indices]  # b x starts x d
    squares = paths.frequencies.square()

    def diagonal(waves: Tensor) -> Tensor:
        return -(waves @ squares)

    coarse = _evaluation(paths, diagonal)
    x, f = ascend(coarse, x, _diagonal_step, config.coarse_steps, config.max_step)
    x = _best(x, f, config.fine_starts)
    products = paths.products()

    def hessian(waves: Tensor) -> Tensor:
        return paths.symmetric(-(waves @ products))

    fine = _evaluation(paths, hessian)
    half = config.fine_steps // 2
    x, f = ascend(fine, x, full_step, half, config.max_step)
    x = _best(x, f, config.survivors)
    x, f = ascend(fine, x, full_step, config.fine_steps - half, config.max_step)
    return Optimum(_best(x, f, 1).squeeze(1), f.amax(1))


def _evaluation(paths: Paths, curvature: Callable[[Tensor], Tensor]) -> Evaluation:
    def evaluate(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        waves, slopes = paths.waves(x)
        return paths.mean[:, None] + waves.sum(-1), slopes @ paths.frequencies, curvature(waves)

    return evaluate


def ascend(
    evaluate: Evaluation, x: Tensor, direction: Direction, num_steps: int, max_step: float
) -> tuple[Tensor, Tensor]:
    """Projected, damped Newton ascent from x, `b x s x d`; returns the end points and values."""
    f, g, H = evaluate(x)
    damping = torch.full_like(f, 0.1)
    for _ in range(num_steps):
        free = ~(((x <= EDGE) & (g < 0)) | ((x >= 1 - EDGE) & (g > 0)))
        step = direction(g * free, H, free, damping[..., None])
        step = step * (max_step / step.abs().amax(-1, keepdim=True).clamp_min(max_step))
        step = torch.where(free, step, x.round() - x)
        x_new = (x + step).clamp(0.0, 1.0)
        f_new, g_new, H_new = evaluate(x_new)
        better = f_new >= f
        f = torch.where(better, f_new, f)
        x, g = (torch.where(better[..., None], new, old) for new, old in ((x_new, x), (g_new, g)))
        H = torch.where(better.reshape(better.shape + (1,) * (H.ndim - 2)), H_new, H)
        damping = torch.where(better, 0.2 * damping, 8.0 * damping).clamp(1e-6, 1e8)
    return x, f


def _diagonal_step(g: Tensor, h: Tensor, free: Tensor, damping: Tensor) -> Tensor:
    """Newton step with the diagonal h, `b x s x d`, of the Hessian."""
    return g / (h.abs() + damping)


def full_step(g: Tensor, H: Tensor, free: Tensor, damping: Tensor) -> Tensor:
    """Newton step with the Hessian, `b x s x d x d`, of the free coordinates."""
    # Frozen coordinates decouple: their rows and columns become minus the identity.
    H = H * (free[..., :, None] & free[..., None, :]) - torch.diag_embed((~free).to(H.dtype))
    eigenvalues, V = torch.linalg.eigh(H)
    step: Tensor
    along = (V.mT @ g[..., None]).squeeze(-1) / (eigenvalues.abs() + damping)
    step = (V @ along[..., None]).squeeze(-1)
    return step


def _best(x: Tensor, f: Tensor, count: int) -> Tensor:
    """The points `b x count x d` with the highest values."""
    index = f.topk(count, dim=1).indices[..., None]
    return x.gather(1, index.expand(-1, -1, x.shape[-1]))
