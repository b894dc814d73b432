"""Projected quasi-Newton ascent from many starts at once.

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

Reference: Nocedal & Wright, Numerical Optimization, 2006, chapter 6.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from amortes.acquisition.domain import Domain, Score

PATIENCE = 3
"""Steps without a rise of the best that matters, after which the climb ends."""
HOPE, KEPT = 3.0, 3
"""Multiple of the promised rise that would have to reach the best, and how many go on in any case:
a third fewer points (docs/log.md, 2026-11-17)."""
SHORTEN, LENGTHEN = 0.25, 4.0
"""Factors of the step after a failure, and after a success along which the gradient grew."""


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
    first_step: float,
    tolerance: float,
    lowest: float,
    scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Climb from x, `s x d`, whose scores are f; returns the best end points and their scores.

    `allowed` says which points may be stepped to; the first step moves no coordinate by more than
    `first_step`. `scale`, `d`, is that of the module's docstring. After the coarse steps only the
    best `survivors` go on. A rise matters if it is `tolerance` times that of the best above
    `lowest`; after a few steps without one the climb ends.
    """
    if not coarse_steps + fine_steps:
        return x, f
    g = _gradient(score, x)[1]
    metric = torch.ones_like(domain.lower) if scale is None else (scale / scale.max()).square()
    H = first_step / (metric * g).abs().amax(-1).clamp_min(1e-300)[:, None, None] * metric.diag()
    known = torch.zeros(len(x), dtype=torch.bool)  # whose H has seen a curvature
    length = torch.ones_like(f)
    idle = 0
    for i in range(coarse_steps + fine_steps):
        if i == coarse_steps:
            best = f.topk(min(survivors, len(f))).indices
            x, f, g, H, known, length = (t[best] for t in (x, f, g, H, known, length))
        held = ((x <= domain.lower) & (g < 0)) | ((x >= domain.upper) & (g > 0))
        uphill = torch.where(held, 0.0, g)
        step = torch.where(held, 0.0, (H @ uphill[..., None]).squeeze(-1))
        step = step * (max_step / step.abs().amax(-1, keepdim=True).clamp_min(max_step))
        top = float(f.max())
        enough = tolerance * (top - lowest)
        rise = (g * step).sum(-1)
        if i and not float((f + 0.5**idle * rise).max()) > top + enough:
            break
        alive = f + HOPE * rise > top
        alive[f.topk(min(KEPT, len(f))).indices] = True
        if not bool(alive.all()):
            x, f, g, H, known, length, step = (t[alive] for t in (x, f, g, H, known, length, step))
        x_new = domain.bring_in(x + length[:, None] * step, x)
        f_new, g_new = _gradient(score, x_new)
        f_new = f_new.where(allowed(x_new), -math.inf)
        H, curved = _learn(H, known, x_new - x, g - g_new, metric)
        known = known | curved
        better = f_new > f
        H = torch.where((better & ~curved)[:, None, None], LENGTHEN * H, H)
        length = torch.where(better, 1.0, SHORTEN * length)
        idle = 0 if float(f_new.max()) > top + enough else idle + 1
        f = torch.where(better, f_new, f)
        x, g = (torch.where(better[:, None], a, b) for a, b in ((x_new, x), (g_new, g)))
        if idle == PATIENCE:
            break
    return x, f


def _gradient(score: Score, x: Tensor) -> tuple[Tensor, Tensor]:
    """Scores at x, `s x d`, and their gradients; NaN becomes -inf and no slope."""
    with torch.inference_mode(False), torch.enable_grad():
        x = x.detach().clone().requires_grad_()
        f = score(x)
        (g,) = torch.autograd.grad(f.sum(), x)
    return f.detach().nan_to_num(-math.inf, math.inf, -math.inf), g.nan_to_num(0.0, 0.0, 0.0)


def _learn(H: Tensor, known: Tensor, s: Tensor, y: Tensor, metric: Tensor) -> tuple[Tensor, Tensor]:
    """BFGS update of H, `m x d x d`, by steps s and falls of the gradient y, both `m x d`.

    Rows without positive curvature stay; also returns which have it, `m`.
    """
    sy = (s * y).sum(-1)
    curved = sy > 1e-8 * s.norm(dim=-1) * y.norm(dim=-1)
    first = curved & ~known
    if bool(first.any()):
        # The first curvature also sets the scale of H in all other directions.
        length = (metric * y.square()).sum(-1).clamp_min(1e-300)
        H = torch.where(first[:, None, None], (sy / length)[:, None, None] * metric.diag(), H)
    per_sy = torch.where(curved, sy.reciprocal(), 0.0)
    s, along = s[:, None], (per_sy[:, None] * s)[..., None]  # m x 1 x d and m x d x 1
    V = torch.baddbmm(torch.eye(s.shape[-1], dtype=s.dtype), along, y[:, None], alpha=-1.0)
    return torch.baddbmm(along @ s, V @ H, V.mT), curved
