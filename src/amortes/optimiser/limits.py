"""Whether data are still what the weights were trained for.

Networks answer for any data, but nobody has measured how well outside the dimensions, numbers of
points and noise of their training; and values are standardised, so that penalties of a million, if
they are so many that no output warp compresses them (`amortes.acquisition.units`), make all
others alike. What leaves the usual is said once, and nothing else changes.
"""

import inspect
import warnings
from collections.abc import Iterator

import torch

from amortes.acquisition import Fitted
from amortes.acquisition.units import ROUNDING, SMALLEST, without_spread

NOISE_QUANTILE = 2.5
"""Standard deviations of the prior's (log) noise beyond which noise counts as unusual."""
ENOUGH = 10
"""Results below which the noise, or what is unusual, is anybody's guess."""
DWARFED = 3.0
"""Penalties are this many times further from the others than these are from each other."""


# Frames a warning does not point at: ours, decorators', and those of frameworks that call us.
NOT_THE_USERS = {"amortes", "contextlib", "concurrent", "threading", "optuna", "sklearn", "ray"}


class AmortesWarning(UserWarning):
    """Something you should know about a run; each kind is shown once per optimiser."""


def warn(message: str) -> None:
    """An `AmortesWarning` that points at the user's line."""
    level, frame = 1, inspect.currentframe()
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in NOT_THE_USERS:
        level, frame = level + 1, frame.f_back
    # Without any line of the user, as in a thread of our own, Python says so itself.
    warnings.warn(message, AmortesWarning, stacklevel=level)


def departures(fitted: Fitted) -> Iterator[tuple[str, str]]:
    """What is outside the training of the network: a name for each kind, and a sentence."""
    prior = fitted.network.prior
    n, d = fitted.X.shape
    if not prior.min_dim <= d <= prior.max_dim:
        yield (
            "dimension",
            f"the space has {d} coordinates, but the network was trained for {prior.min_dim} to "
            f"{prior.max_dim}, so suggestions may be poor. Fix some parameters, or use a network "
            f"trained for more. (A Categorical with 3 to 8 choices has one coordinate for each "
            f"choice; with more, it has 4 to 11.)",
        )
    if without_spread(fitted.y) and bool((fitted.y != fitted.y[0]).any()):
        yield (
            "spread",
            f"the results differ by less than {ROUNDING:g} of their size (or by less than "
            f"{SMALLEST:g}), so they count as equal. Subtract a constant from the results, or "
            f"rescale them.",
        )
    most = fitted.network.trained_points
    if most is not None and n > most:
        yield (
            "points",
            f"there are {n} results, but the network was trained on at most {most}, so suggestions "
            f"may be slower and worse.",
        )
    if n >= ENOUGH and (count := _penalties(fitted)):
        yield (
            "penalties",
            f"{count} of {n} results are equal, and so much worse than the others that the network "
            f"can hardly tell the others apart. If they are penalties for failed evaluations, tell "
            f"failed=True (or NaN) instead.",
        )
    if n >= ENOUGH and (noise := _noise(fitted)) > _largest_noise(fitted):
        yield (
            "noise",
            f"the noise is about {noise:.2g} of the standard deviation of the results, more than "
            f"the network was trained for ({_largest_noise(fitted):.2g}). Average several "
            f"evaluations per config, or use a network trained on the prior 'real'.",
        )


def _penalties(fitted: Fitted) -> int:
    """How many results are equal to the worst, if they are several and dwarf all others.

    One alone may be a bad point met on the way to many good ones, two may be opposite corners.
    """
    utility = fitted.units.sign * fitted.y
    worst = utility.min()
    rest = utility[utility > worst]
    count = len(utility) - len(rest)
    if count < 3 or len(rest) < 2:
        return 0
    spread = float(rest.max() - rest.min())
    # Without a spread there are two kinds of results, and the worse is no penalty.
    return count if 0.0 < DWARFED * spread < float(rest.min() - worst) else 0


def _noise(fitted: Fitted) -> float:
    """Standard deviation of the noise, in units of that of the results."""
    if fitted.noise_share is not None:
        return fitted.noise_share
    # A network that cannot tell has nothing but noise left at a point it has seen.
    with torch.no_grad():
        return float(fitted.predict(fitted.best_points(1)).sd / fitted.y.std())


def _largest_noise(fitted: Fitted) -> float:
    z = torch.tensor(NOISE_QUANTILE, dtype=torch.float64)
    return float(fitted.network.prior.noise_sd.transform(z, fitted.d))
