"""The default policy: which acquisition suits the results so far, and what to use in the end.

Without noise what counts is the best result, and expected improvement goes for it. With noise it is
the config that is recommended in the end, and joint entropy search finds out which is best: it
never repeats what it believes best just to see it. Measured in docs/log.md, 2026-11-18.
"""

import torch
from torch import Tensor

from amortes.acquisition.fitted import Fitted

NOISY = 0.1
"""Noise, in standard deviations of the results, from which on information is worth more than
improvement."""
SURE = 0.9
"""Chance of being better than the best result without which a place never tried is not recommended,
if there is no noise."""


def is_noisy(fitted: Fitted) -> bool:
    """Whether there is enough noise to matter; unknown noise is."""
    return fitted.noise_share is None or fitted.noise_share > NOISY


def automatic(fitted: Fitted) -> str:
    """The acquisition that suits the results of the fit."""
    return "jes" if is_noisy(fitted) else "logei"


def recommended(fitted: Fitted, x: Tensor) -> Tensor:
    """The place to use in the end, `d`: x, that of the best posterior mean, or the best one tried.

    Without noise the best result is known, and a place never tried has to be better almost surely:
    the maximum of a posterior mean may be an artefact.
    """
    best = fitted.best_points(1)[0]
    if is_noisy(fitted) or bool((x == best).all()):
        return x
    with torch.no_grad():
        chance = float(fitted.chance_of_improvement(x[None]))
    return x if chance >= SURE else best
