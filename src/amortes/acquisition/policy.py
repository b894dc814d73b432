"""The default policy: which acquisition suits the results so far, and what to use in the end.

Expected improvement over the best point, as uncertain as that is, goes for a good result at once.
With noise that is not all: what counts is the config that is recommended in the end, and joint
entropy search finds out which is best. Early on it is worse all the same: docs/log.md, 2026-11-18.
"""

import torch
from torch import Tensor

from amortes.acquisition.fitted import Fitted

NOISY = 0.1
"""Noise that matters, in standard deviations of the results."""
ENOUGH = 40
"""Results from which on, with noise, information is worth more than improvement."""
SURE = 0.9
"""Chance of being better than the best result without which a place never tried is not recommended,
if there is no noise."""


def is_noisy(fitted: Fitted) -> bool:
    """Whether there is enough noise to matter; unknown noise is."""
    return fitted.noise_share is None or fitted.noise_share > NOISY


def automatic(fitted: Fitted) -> str:
    """The acquisition that suits the results of the fit."""
    return "jes" if len(fitted.X) >= ENOUGH and is_noisy(fitted) else "logei"


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
