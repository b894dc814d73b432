"""Minimise a function in one call, in the manner of SciPy: `python examples/scipy_style.py`."""

import math
import sys

from amortes import Float, minimize


def branin(config: dict[str, float]) -> float:
    """Branin's function; three minima of 0.398."""
    x, y = config["x"], config["y"]
    valley = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def main(n_trials: int = 40) -> None:
    """Optimise, and print what was found."""
    space = {"x": Float(-5, 10), "y": Float(0, 15)}
    result = minimize(branin, space, n_trials=n_trials, early_stop=1e-4, seed=0)
    print(result.message)
    print(f"best of {result.n_trials}: {result.fun:.4f} at {result.x}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
