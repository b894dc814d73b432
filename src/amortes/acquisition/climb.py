"""Scores, their gradients, and projected quasi-Newton ascent from many starts at once.

    step   x + H g on the free coordinates, brought back into the domain
    BFGS   H <- (I - s y'/s'y) H (I - y s'/s'y) + s s'/s'y,   s = x' - x,  y = g - g'

H approximates the inverse of minus the Hessian. It begins as a multiple of diag(scale^2), with the
lengths over which the score varies along each coordinate, if they are known: a steepest ascent in
coordinates in which all directions are alike. Coordinates held at a bound by the gradient are
frozen, and none moves further than `max_step`. A step is kept if the value rises; if not, the next
one is shorter. Curvature is learned from either. All starts step together, because an evaluation of
a few points costs less than one after the other; half-way only the best go on. Starts that do not
even promise to reach the best with `HOPE` times the rise of their next step s, g's, are given up,
but for the best few. The climb ends when no start promises to rise above the best by enough to
matter (f + g's); every step in which none did halves what is promised.

Ten points in a few dimensions are small arrays, with which NumPy is several times as fast as
PyTorch; scores that know their gradients are not differentiated.

Reference: Nocedal & Wright, Numerical Optimization, 2006, chapter 6.
"""

import math
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from amortes.acquisition.domain import Domain

Array = NDArray[np.float64]

PATIENCE = 3
"""Steps without a rise of the best that matters, after which the climb ends."""
HOPE, KEPT = 3.0, 3
"""Multiple of the promised rise that would have to reach the best, and how many go on in any case:
a third fewer points (docs/log.md, 2026-11-17)."""
SHORTEN, LENGTHEN = 0.25, 4.0
"""Factors of the step after a failure, and after a success along which the gradient grew."""


Score = Callable[[Tensor], Tensor]
"""Points `m x d` -> how good they are, `m`; differentiable by torch where a search climbs it."""


@runtime_checkable
class Differentiated(Protocol):
    """A score that knows its gradient, in less time than torch takes to differentiate it."""

    def __call__(self, X: Tensor, /) -> Tensor:
        """Scores of points `m x d`: `m`."""

    def with_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of points `m x d`, and their gradients: `m` and `m x d`."""


def with_gradient(score: Score, X: Tensor) -> tuple[Tensor, Tensor]:
    """Scores of points `m x d`, and their gradients: `m` and `m x d`, without a graph."""
    if isinstance(score, Differentiated):
        return score.with_gradient(X)
    return differentiate(score, X)


def differentiate(score: Score, X: Tensor) -> tuple[Tensor, Tensor]:
    """The same by automatic differentiation; no gradient counts as one of zero."""
    with torch.inference_mode(False), torch.enable_grad():
        X = X.detach().clone().requires_grad_()
        f = score(X)
        g = torch.autograd.grad(f.sum(), X)[0] if f.requires_grad else torch.zeros_like(X)
    return f.detach(), g


@np.errstate(all="ignore")
def climb(
    score: Score,
    domain: Domain,
    allowed: Callable[[Tensor], Tensor],
    x: Tensor,
    f: Tensor,
    *,
    coarse_steps: int,
    fine_steps: int,
    survivors: int,
    max_step: float,
    first_step: Tensor,
    tolerance: float,
    lowest: float,
    scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Climb from x, `s x d`, whose scores are f; returns the best end points and their scores.

    `allowed` says which points may be stepped to; the first step of each start moves no coordinate
    by more than its `first_step`, `s`. `scale`, `d`, is that of the module's docstring. After the
    coarse steps only the best `survivors` go on. A rise matters if it is `tolerance` times that of
    the best above `lowest`; after a few steps without one the climb ends.
    """
    if not coarse_steps + fine_steps:
        return x, f
    lower, upper = domain.lower.numpy(), domain.upper.numpy()
    metric = np.ones(domain.d) if scale is None else np.square((scale / scale.max()).numpy())
    at, value, g = x.numpy(), f.numpy(), _at(score, x)[1]
    length = first_step.numpy() / np.maximum(np.abs(metric * g).max(-1), 1e-300)
    H = length[:, None, None] * np.diag(metric)
    known = np.zeros(len(at), dtype=bool)  # whose H has seen a curvature
    length = np.ones(len(at))
    idle = 0
    for i in range(coarse_steps + fine_steps):
        if i == coarse_steps:
            best = _highest(value, survivors)
            at, value, g, H, known, length = (t[best] for t in (at, value, g, H, known, length))
        held = ((at <= lower) & (g < 0)) | ((at >= upper) & (g > 0))
        uphill = np.where(held, 0.0, g)
        step = np.where(held, 0.0, (H @ uphill[..., None])[..., 0])
        step *= max_step / np.maximum(np.abs(step).max(-1, keepdims=True), max_step)
        top = value.max()
        enough = tolerance * (top - lowest)
        rise = (g * step).sum(-1)
        if i and not (value + 0.5**idle * rise).max() > top + enough:
            break
        alive = value + HOPE * rise > top
        alive[_highest(value, KEPT)] = True
        if not alive.all():
            at, value, g, H = at[alive], value[alive], g[alive], H[alive]
            known, length, step = known[alive], length[alive], step[alive]
        moved = torch.from_numpy(at + length[:, None] * step)
        moved = domain.bring_in(moved, torch.from_numpy(at))
        value_new, g_new = _at(score, moved)
        value_new[~allowed(moved).numpy()] = -math.inf
        at_new = moved.numpy()
        H, curved = _learn(H, known, at_new - at, g - g_new, metric)
        known = known | curved
        better = value_new > value
        H[better & ~curved] *= LENGTHEN
        length = np.where(better, 1.0, SHORTEN * length)
        idle = 0 if value_new.max() > top + enough else idle + 1
        value = np.where(better, value_new, value)
        at, g = (np.where(better[:, None], a, b) for a, b in ((at_new, at), (g_new, g)))
        if idle == PATIENCE:
            break
    return torch.from_numpy(at), torch.from_numpy(value)


def _at(score: Score, x: Tensor) -> tuple[Array, Array]:
    """Scores at x, `s x d`, and their gradients; NaN becomes -inf and no slope."""
    f, g = with_gradient(score, x)
    return (
        np.nan_to_num(f.numpy(), nan=-math.inf, posinf=math.inf, neginf=-math.inf),
        np.nan_to_num(g.numpy(), nan=0.0, posinf=0.0, neginf=0.0),
    )


def _highest(values: Array, count: int) -> NDArray[np.intp]:
    """Where the highest values are, the first of equals first."""
    return np.argsort(-values, kind="stable")[:count]


def _learn(
    H: Array, known: NDArray[np.bool_], s: Array, y: Array, metric: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """BFGS update of H, `m x d x d`, by steps s and falls of the gradient y, both `m x d`.

    Rows without positive curvature stay; also returns which have it, `m`.
    """
    sy = (s * y).sum(-1)
    curved = sy > 1e-8 * np.linalg.norm(s, axis=-1) * np.linalg.norm(y, axis=-1)
    first = curved & ~known
    if first.any():
        # The first curvature also sets the scale of H in all other directions.
        length = sy / np.maximum((metric * np.square(y)).sum(-1), 1e-300)
        H = np.where(first[:, None, None], length[:, None, None] * np.diag(metric), H)
    along = np.where(curved, 1.0 / sy, 0.0)[:, None, None] * s[..., None]  # m x d x 1
    V = np.eye(s.shape[-1]) - along * y[:, None]
    return V @ H @ V.swapaxes(-1, -2) + along * s[:, None], curved
