"""Modes of the log posterior of hyperparameters, by damped scoring from several starts at once.

    step  (F + damping I)^-1 gradient,    F being the information of `hyper_posterior`

Damping follows the rise of a step as a share of the rise that was predicted (Nocedal & Wright,
Numerical Optimization, 2006, chapter 4).
"""

from typing import NamedTuple

import numpy as np

from amortes.nets.kernel.hyper_posterior import HyperPosterior
from amortes.nets.kernel.numpy_kernels import Array

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

    mode: Array  # b x p
    information: Array  # b x p x p
    value: Array  # b, the log posterior there


def find_modes(posterior: HyperPosterior, start: Array, steps: int, rivals: int = 1) -> Modes:
    """Modes by damped Fisher scoring from `start`, `b x p`.

    Damping follows the rise of a step as a share of the rise that was predicted: else steps jump to
    and fro across flat valleys of short lengthscales. A climb ends where it is no longer `STEEP`.
    Without noise a step takes at most half a unit off its logarithm, and it may be a long one.
    Of each `rivals` climbs in turn, those that do not even promise to come near the best with
    `HOPE` times the rise of their next step end as well.
    """
    modes, informations = start.copy(), np.empty((*start.shape, start.shape[-1]))
    place, z = np.arange(len(start)), start
    value, gradient, information = posterior.derivatives(z)
    values = value.copy()
    damping = np.full_like(value, 0.1)
    eye = np.eye(z.shape[-1])
    part = posterior
    for _ in range(steps):
        free = (np.abs(z) < FURTHEST) | (gradient * z < 0.0)
        gradient = np.where(free, gradient, 0.0)
        damped = information + damping[:, None, None] * eye
        step = np.linalg.solve(damped, gradient[..., None])[..., 0]
        going = np.square(gradient).sum(-1) > STEEP**2
        if rivals > 1:
            best = values.reshape(-1, rivals).max(-1).repeat(rivals)[place]
            going &= value + HOPE * (gradient * step).sum(-1) > best - NEGLIGIBLE
        if not going.all():
            modes[place], informations[place] = z, information
            climbing = (place, z, value, gradient, information, damping, step)
            place, z, value, gradient, information, damping, step = (t[going] for t in climbing)
            if len(place) == 0:
                break
            part = posterior.rows(place)
        step = step * (2.0 / np.maximum(np.linalg.norm(step, axis=-1, keepdims=True), 2.0))
        z_new = np.clip(z + step, -FURTHEST, FURTHEST)
        value_new, gradient_new, information_new = part.derivatives(z_new)
        step, rise = z_new - z, value_new - value
        bend = (step[:, None] @ information @ step[..., None])[:, 0, 0]
        share = rise / np.maximum((gradient * step).sum(-1) - 0.5 * bend, 1e-12)
        better = rise >= 0.0
        more = np.where(better, 4.0, 8.0) * np.maximum(damping, 1.0)
        less = np.where(share > GOOD, 0.2 * damping, damping)
        damping = np.clip(np.where(share > POOR, less, more), 1e-4, 1e6)
        value = np.where(better, value_new, value)
        z = np.where(better[:, None], z_new, z)
        gradient = np.where(better[:, None], gradient_new, gradient)
        information = np.where(better[:, None, None], information_new, information)
        values[place] = value
    modes[place], informations[place] = z, information
    return Modes(modes, informations, values)
