"""Modes of the log posterior of hyperparameters, by damped scoring from several starts at once.

    step  (F + damping I)^-1 gradient,    F being the information of `hyper_posterior`

Damping follows the rise of a step as a share of the rise that was predicted (Nocedal & Wright,
Numerical Optimization, 2006, chapter 4).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from amortes import linalg
from amortes.nets.kernel.hyper_posterior import HyperPosterior

# Norm of the gradient of the log posterior that is too much for a mode (docs/log.md, 2026-11-17).
STEEP = 1.0
# How many times the rise of its next step a climb may hope for.
HOPE = 10.0
# Shares of the predicted rise above which there is less damping, and below which there is more.
GOOD, POOR = 0.6, 0.2
# The mode is looked for within so many standard deviations of the prior.
FURTHEST = 5.0
# Nats of log posterior or evidence below the best that are of no account.
NEGLIGIBLE = 8.0


class Modes(NamedTuple):
    """Where climbs have ended."""

    mode: Tensor  # b x p
    information: Tensor  # b x p x p
    value: Tensor  # b, the log posterior there


def find_modes(posterior: HyperPosterior, start: Tensor, steps: int, rivals: int = 1) -> Modes:
    """Modes by damped Fisher scoring from `start`, `b x p`.

    Damping follows the rise of a step as a share of the rise that was predicted: else steps jump to
    and fro across flat valleys of short lengthscales. A climb ends where it is no longer `STEEP`.
    Without noise a step takes at most half a unit off its logarithm, and it may be a long one.
    Of each `rivals` climbs in turn, those that do not even promise to come near the best with
    `HOPE` times the rise of their next step end as well.
    """
    modes, informations = start.clone(), start.new_empty(*start.shape, start.shape[-1])
    place, z = torch.arange(len(start)), start
    value, gradient, information = posterior.derivatives(z)
    values = value.clone()
    damping = torch.full_like(value, 0.1)
    eye = torch.eye(z.shape[-1], dtype=z.dtype)
    part = posterior
    for _ in range(steps):
        free = (z.abs() < FURTHEST) | (gradient * z < 0.0)
        gradient = torch.where(free, gradient, 0.0)
        damped = information + damping[:, None, None] * eye
        step = torch.cholesky_solve(gradient[..., None], linalg.cholesky(damped)).squeeze(-1)
        going = gradient.norm(dim=-1) > STEEP
        if rivals > 1:
            best = values.reshape(-1, rivals).amax(-1).repeat_interleave(rivals)[place]
            going &= value + HOPE * (gradient * step).sum(-1) > best - NEGLIGIBLE
        if not bool(going.all()):
            modes[place], informations[place] = z, information
            climbing = (place, z, value, gradient, information, damping, step)
            place, z, value, gradient, information, damping, step = (t[going] for t in climbing)
            if len(place) == 0:
                break
            part = posterior.rows(place)
        step = step * (2.0 / step.norm(dim=-1, keepdim=True).clamp_min(2.0))
        z_new = (z + step).clamp(-FURTHEST, FURTHEST)
        value_new, gradient_new, information_new = part.derivatives(z_new)
        step, rise = z_new - z, value_new - value
        bend = (step[:, None] @ information @ step[..., None]).flatten()
        share = rise / ((gradient * step).sum(-1) - 0.5 * bend).clamp_min(1e-12)
        better = rise >= 0.0
        more = torch.where(better, 4.0, 8.0) * damping.clamp_min(1.0)
        less = torch.where(share > GOOD, 0.2 * damping, damping)
        damping = torch.where(share > POOR, less, more).clamp(1e-4, 1e6)
        value = torch.where(better, value_new, value)
        z = torch.where(better[:, None], z_new, z)
        gradient = torch.where(better[:, None], gradient_new, gradient)
        information = torch.where(better[:, None, None], information_new, information)
        values[place] = value
    modes[place], informations[place] = z, information
    return Modes(modes, informations, values)
