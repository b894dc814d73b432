"""Classic test functions, without their habit of being best in the centre.

BoTorch's functions, as functions to be maximised, each on a box of its own inside the usual domain:
along each coordinate the box has a random share of the domain's width, between a half and 0.8, and
a random place that keeps a global maximum inside. So coordinates differ in scale and the maximum
can be anywhere, while its value stays. The boxes depend on the names of the functions alone.

    classic-<function>          without noise
    classic-<function>-noisy    with noise, of standard deviation 0.1 (best - lowest), the lowest
                                value being that of 4,096 Sobol points
    wide-<function>             of 20 to 30 coordinates; those of the function are at random places
                                among some that it does not depend on, if there are any
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amortes.bench.problems.synthetic import botorch_function, sobol_points, within
from amortes.bench.protocol import Kind, Problem
from amortes.random import hashed

PREFIX, NOISY, WIDE_PREFIX = "classic-", "-noisy", "wide-"
NOISE_SHARE = 0.1  # of the range
WIDTHS = (0.5, 0.8)  # of boxes, as shares of the domain


@dataclass(frozen=True)
class Function:
    """The class in BoTorch, the dimension if it can be chosen, a maximiser and its value.

    Then how many coordinates there are on which it does not depend.

    The maximiser has six digits, enough to place a box around it; a number stands for a vector of
    equal coordinates. The value is from Newton-like searches around it.
    """

    botorch: str
    optimum: float | tuple[float, ...]
    best: float
    dim: int | None = None
    unused: int = 0


FUNCTIONS: dict[str, Function] = {
    "branin": Function("Branin", (-3.141593, 12.275), -0.39788735772973816),
    "six-hump-camel": Function("SixHumpCamel", (0.089842, -0.712656), 1.0316284534898774),
    "drop-wave": Function("DropWave", 0.0, 1.0),
    "beale": Function("Beale", (3.0, 0.5), 0.0),
    "holder-table": Function("HolderTable", (8.055023, 9.66459), 19.208502567886747),
    "egg-holder": Function("EggHolder", (512.0, 404.231805), 959.640662720851),
    "michalewicz2": Function("Michalewicz", (2.202906, 1.570796), 1.8013034100985532, 2),
    "hartmann3": Function("Hartmann", (0.114589, 0.555649, 0.852547), 3.862779787332663, 3),
    "rastrigin3": Function("Rastrigin", 0.0, 0.0, 3),
    "styblinski-tang3": Function("StyblinskiTang", -2.903534, 117.49849711131428, 3),
    "hartmann4": Function(
        "Hartmann", (0.187395, 0.194152, 0.557918, 0.26478), 3.1344941447601555, 4
    ),
    "shekel": Function("Shekel", (4.000747, 3.999509, 4.000747, 3.999509), 10.536443153483532),
    "ackley4": Function("Ackley", 0.0, 0.0, 4),
    "griewank4": Function("Griewank", 0.0, 0.0, 4),
    "powell4": Function("Powell", 0.0, 0.0, 4),
    "rosenbrock4": Function("Rosenbrock", 1.0, 0.0, 4),
    "levy5": Function("Levy", 1.0, 0.0, 5),
    "michalewicz5": Function(
        "Michalewicz", (2.202906, 1.570796, 1.284992, 1.923058, 1.72047), 4.687658179088148, 5
    ),
    "styblinski-tang5": Function("StyblinskiTang", -2.903534, 195.83082851885706, 5),
    "dixon-price5": Function("DixonPrice", (1.0, 0.707107, 0.594604, 0.545254, 0.522137), 0.0, 5),
    "hartmann6": Function(
        "Hartmann",
        (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.657301),
        3.322368004440186,
        6,
    ),
    "ackley6": Function("Ackley", 0.0, 0.0, 6),
    "rosenbrock6": Function("Rosenbrock", 1.0, 0.0, 6),
    "cosine8": Function("Cosine8", 0.0, 0.8),
    "levy8": Function("Levy", 1.0, 0.0, 8),
}
WIDE: dict[str, Function] = {
    "levy20": Function("Levy", 1.0, 0.0, 20),
    "ackley20": Function("Ackley", 0.0, 0.0, 20),
    "rosenbrock20": Function("Rosenbrock", 1.0, 0.0, 20),
    "styblinski-tang20": Function("StyblinskiTang", -2.903534, 783.3233140754282, 20),
    "griewank24": Function("Griewank", 0.0, 0.0, 24),
    "hartmann6-in-24": dataclasses.replace(FUNCTIONS["hartmann6"], unused=18),
    "rosenbrock30": Function("Rosenbrock", 1.0, 0.0, 30),
    "levy8-in-30": dataclasses.replace(FUNCTIONS["levy8"], unused=22),
}
NAMES = tuple(f"{PREFIX}{name}" for name in FUNCTIONS)
NOISY_NAMES = tuple(f"{name}{NOISY}" for name in NAMES)
WIDE_NAMES = tuple(f"{WIDE_PREFIX}{name}" for name in WIDE)


class Classic(Problem):
    """A function by a name such as `classic-levy5`, `classic-levy5-noisy`, or `wide-levy20`."""

    best: float

    def __init__(self, name: str) -> None:
        self.name = name
        noisy = name.endswith(NOISY)
        base = name.removeprefix(PREFIX).removeprefix(WIDE_PREFIX).removesuffix(NOISY)
        function = WIDE[base] if name.startswith(WIDE_PREFIX) else FUNCTIONS[base]
        self._function = botorch_function(function.botorch, function.dim)
        self._sign = -1.0 if self._function.is_minimization_problem else 1.0
        self.d, self.best = self._function.dim + function.unused, function.best
        self._box = _box(base, self._function.bounds, function.optimum)
        rng = np.random.Generator(np.random.Philox(key=hashed(name)))
        used = rng.permutation(self.d)[: self._function.dim]
        self._used = torch.from_numpy(used) if function.unused else slice(None)
        if noisy:
            lowest = float(self.value(sobol_points(self.d)).min())
            self.noise_sd = NOISE_SHARE * (self.best - lowest)

    def value(self, X: Tensor) -> Tensor:
        """The function at X, `m x d` in the unit cube: `m`."""
        value: Tensor = self._sign * self._function(within(self._box, X[:, self._used]))
        return value


def _box(name: str, bounds: Tensor, optimum: Any) -> Tensor:
    """A box inside the bounds, `2 x d`, with the optimum in it: `2 x d`."""
    low, high = bounds
    rng = np.random.Generator(np.random.Philox(key=hashed(name)))
    shares, places = torch.from_numpy(rng.random((2, low.numel())))
    width = WIDTHS[0] + (WIDTHS[1] - WIDTHS[0]) * shares
    best = (torch.as_tensor(optimum, dtype=torch.float64) - low) / (high - low)
    # The lower end of a box of this width that is inside and holds the optimum.
    least, most = (best - width).clamp(min=0.0), torch.minimum(best, 1.0 - width)
    start = least + (most - least) * places
    return torch.stack([low + (high - low) * end for end in (start, start + width)])


_KNOWN = (
    *("branin", "holder-table", "hartmann3", "rastrigin3", "shekel", "rosenbrock4", "levy5"),
    *("styblinski-tang5", "hartmann6", "ackley6"),
)
KIND = Kind(
    family="classic", names=NAMES, make=Classic, real=tuple(f"{PREFIX}{name}" for name in _KNOWN)
)
NOISY_KIND = Kind(
    family="classic-noisy",
    names=NOISY_NAMES,
    make=Classic,
    real=tuple(f"{name}{NOISY}" for name in KIND.real),
)
WIDE_KIND = Kind(family="wide", names=WIDE_NAMES, make=Classic, seeds=(0, 1, 2))
