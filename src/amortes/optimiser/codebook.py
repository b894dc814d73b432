"""Points of the unit cube that stand for choices without order: k points in m coordinates.

k <= 8         m = k: a unit vector each (one-hot), all equally far apart; two choices: 0 and 1.
8 < k <= 64    corners of the cube, m = 8 to 11: words of a shortened extended Hamming code, any two
               of which differ in at least four coordinates.
k > 64         the first k points of a scrambled Sobol sequence, m = 4.

With unit vectors, time and memory grow with k^3 and k^2, and there is a lengthscale to learn for
each choice. Corners of the code are at least 2 apart, unit vectors sqrt(2). Of very many choices
most are never tried, and fewer coordinates predict better.

Log loss on functions of two numbers and a choice, over three kinds of functions, 50 points, network
`kernel-robust` (docs/log.md, 2026-11-18, "Many choices"): k = 8: one-hot -0.55, code -0.52, Sobol
-0.47; k = 16: 0.12, 0.10, 0.20; k = 30: 0.65, 0.56, 0.67; k = 50: code 0.85, Sobol 1.01; k = 200:
1.11, 1.11; k = 1000: 1.20, 1.13.
"""

import itertools

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

ONE_HOT, CODED = 8, 64
"""The most choices that are unit vectors, and that are corners."""
SOBOL_DIMS = 4
MOST = 10_000
"""Choices above which the nearest of them takes too long to find."""


def codebook(k: int) -> Tensor:
    """The points of k >= 2 choices, distinct: `k x m`, float64."""
    if k == 2:
        return torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    if k <= ONE_HOT:
        return torch.eye(k, dtype=torch.float64)
    if k <= CODED:
        return _corners(k)
    sobol = SobolEngine(SOBOL_DIMS, scramble=True, seed=0)  # type: ignore[no-untyped-call]
    points: Tensor = sobol.draw(k, dtype=torch.float64)
    return points


def _corners(k: int) -> Tensor:
    """k words of the code: message bits, and check bits with an odd number for each of them.

    Words that differ in one message bit differ in three check bits or more; in two, in two or more
    (columns are distinct, and their sum is even); in three, in one or more (the sum is odd).
    """
    bits = (k - 1).bit_length()
    checks = next(r for r in itertools.count(3) if 2 ** (r - 1) - r >= bits)
    columns = [c for c in range(2**checks) if c.bit_count() % 2 and c.bit_count() > 1][:bits]
    message = _bits(torch.arange(k), bits)
    check = (message @ _bits(torch.tensor(columns), checks)) % 2
    return torch.cat([message, check], dim=1)


def _bits(numbers: Tensor, count: int) -> Tensor:
    """Binary digits of the numbers `n`: `n x count`."""
    return ((numbers[:, None] >> torch.arange(count)) & 1).double()
