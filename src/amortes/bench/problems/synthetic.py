"""Branin, Hartmann and Ackley functions, as BoTorch has them, on the unit cube.

Negated, because problems are maximised; observed with noise of standard deviation 0.316 unless the
name says otherwise (`hartmann6-noise0.5`). Regrets are in the units of the functions: Branin spans
about 300, Hartmann about 3.3, Ackley about 22.

`ackley5-near` and `ackley8-near` are restricted to |x| <= 15. The published curves seem to be of
these: they begin at a mean log10 regret of 1.25, that of a random point there, while on BoTorch's
own domain, |x| <= 32.768, a random point has 1.32.
"""

import re
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from amortes.bench.protocol import Problem
from amortes.errors import ConfigError, needs_extra

NOISE_SD = 0.316  # as in the paper
# Dimension and highest value of the negated function. BoTorch gives some optima to six digits and
# others not at all; these are from Newton's method, for the float32 coefficients that it has.
FUNCTIONS: dict[str, tuple[int, float]] = {
    "branin": (2, -0.39788735772973816),
    "hartmann4": (4, 3.1344941447601555),
    "ackley5": (5, 0.0),
    "hartmann6": (6, 3.322368004440186),
    "ackley8": (8, 0.0),
    "ackley5-near": (5, 0.0),
    "ackley8-near": (8, 0.0),
}
NEAR = 15.0
NOISY = re.compile(r"(?P<base>[a-z0-9-]+?)-noise(?P<sd>\d+(\.\d+)?)")


class Synthetic(Problem):
    """One of `FUNCTIONS`, by name; with `-noise<sd>` after it, under another noise."""

    family = "synthetic"

    def __init__(self, name: str) -> None:
        self.name = name
        base = name
        self.noise_sd = NOISE_SD
        if match := NOISY.fullmatch(name):
            base, self.noise_sd = match["base"], float(match["sd"])
        if base not in FUNCTIONS:
            raise ConfigError(
                f"problem: no function {base!r}; there are {', '.join(FUNCTIONS)}, each also with "
                f"-noise<sd>."
            )
        self.d, self.best = FUNCTIONS[base]
        self._function = _botorch_function(base, self.d)

    def value(self, X: Tensor) -> Tensor:
        """The negated function at X, `m x d` in the unit cube: `m`."""
        low, high = self._function.bounds
        # Rounding may leave the bounds, which BoTorch refuses.
        value: Tensor = -self._function((low + (high - low) * X).clamp(low, high))
        return value


def _botorch_function(base: str, d: int) -> Any:
    with (
        needs_extra("bench", f"Problem {base} is a function of BoTorch"),
        warnings.catch_warnings(),
    ):
        # linear_operator scripts a function when it is imported.
        warnings.simplefilter("ignore", DeprecationWarning)
        from botorch.test_functions import Ackley, Branin, Hartmann
    makers: dict[str, Callable[[], Any]] = {
        "branin": lambda: Branin(dtype=torch.float64),
        "hartmann": lambda: Hartmann(dim=d, dtype=torch.float64),
        "ackley": lambda: Ackley(dim=d, bounds=near, dtype=torch.float64),
    }
    kind, _, rest = base.partition("-")
    near = [(-NEAR, NEAR)] * d if rest == "near" else None
    return makers[kind.rstrip("0123456789")]()
