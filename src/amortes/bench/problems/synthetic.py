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
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes.bench.protocol import Kind, Problem
from amortes.errors import needs_extra

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


def botorch_function(name: str, d: int | None = None, **options: Any) -> Any:
    """A new function of that class, in d dimensions if it can have several, in float64."""
    with needs_extra("bench", f"{name} is a function of BoTorch"), warnings.catch_warnings():
        # linear_operator scripts a function when it is imported.
        warnings.simplefilter("ignore", DeprecationWarning)
        import botorch.test_functions
    maker = getattr(botorch.test_functions, name)
    dim = {} if d is None else {"dim": d}
    return maker(**dim, **options, dtype=torch.float64)


def within(bounds: Tensor, X: Tensor) -> Tensor:
    """Points X of the unit cube, `m x d`, in a box with the bounds `2 x d`: `m x d`."""
    low, high = bounds
    # Rounding may leave the bounds, which BoTorch refuses.
    inside: Tensor = (low + (high - low) * X).clamp(low, high)
    return inside


def sobol_points(d: int, count: int = 4096) -> Tensor:
    """Points spread over the unit cube, `count x d`, always the same."""
    sobol: Any = SobolEngine  # untyped in torch
    points: Tensor = sobol(d, scramble=True, seed=0).draw(count, dtype=torch.float64)
    return points


class Synthetic(Problem):
    """One of `FUNCTIONS`, by name; with `-noise<sd>` after it, under another noise."""

    def __init__(self, name: str) -> None:
        self.name = name
        base = name
        self.noise_sd = NOISE_SD
        if match := NOISY.fullmatch(name):
            base, self.noise_sd = match["base"], float(match["sd"])
        self.d, self.best = FUNCTIONS[base]
        kind = base.partition("-")[0].rstrip("0123456789").title()
        bounds = {"bounds": [(-NEAR, NEAR)] * self.d} if base.endswith("-near") else {}
        self._function = botorch_function(kind, None if kind == "Branin" else self.d, **bounds)

    def value(self, X: Tensor) -> Tensor:
        """The negated function at X, `m x d` in the unit cube: `m`."""
        value: Tensor = -self._function(within(self._function.bounds, X))
        return value


def _label(name: str) -> str:
    base, _, near = name.partition("-")
    domain = f", |x| ≤ {NEAR:g}" if near else ""
    return f"{base.rstrip('0123456789').title()}{domain}, {FUNCTIONS[name][0]}-D"


KIND = Kind(
    family="synthetic",
    names=tuple(FUNCTIONS),
    make=Synthetic,
    group="synthetic",
    labels={name: _label(name) for name in FUNCTIONS},
)
NOISE_KIND = Kind(  # of the paper's noise study
    family="synthetic",
    names=tuple(f"{name}-noise0.5" for name in FUNCTIONS),
    make=Synthetic,
    group="noise",
    labels={f"{name}-noise0.5": f"{_label(name)}, noise 0.5" for name in FUNCTIONS},
)
