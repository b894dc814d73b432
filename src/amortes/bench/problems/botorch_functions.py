"""Test functions of BoTorch by the names of their classes."""

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes.errors import needs_extra


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
