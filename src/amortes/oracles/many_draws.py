"""Information gains beyond two dimensions, where brute force gives up: many draws of the optimum.

The closed form conditions on `DRAWS` draws of the optimum among `POINTS` representer points, eight
times as many draws as in use, of other quantiles: a reference for the error of a few draws and for
gains that are learned, but not for the closed form itself, which brute force judges in one and two
dimensions (`amortes.oracles.brute_force`). A kernel network is compared with itself; others with
one of their prior in which nothing is learned.
"""

import dataclasses
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes.nets.base import Network
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.nets.kernel.representers import RepresenterConfig
from amortes.oracles.brute_force import rank_correlation

DRAWS, POINTS = 256, 256
QUERIES = 192
NEAR = 0.1  # standard deviation of the half of the queries that is around the best observations
CENTRES = 8


def queries(X: Tensor, y: Tensor, seed: int) -> Tensor:
    """Points such as a search looks at, `QUERIES x d`: half anywhere, half around the best ones."""
    d, half = X.shape[1], QUERIES // 2
    sobol: Any = SobolEngine  # untyped in torch
    U: Tensor = sobol(2 * d, scramble=True, seed=seed).draw(half, dtype=torch.float64)
    centres = X[y.topk(min(CENTRES, len(y))).indices]
    around = centres[torch.arange(half) % len(centres)]
    steps = torch.special.ndtri(U[:, d:].clamp(1e-6, 1 - 1e-6))
    return torch.cat([U[:, :d], (around + NEAR * steps).clamp(0.0, 1.0)])


@torch.no_grad()
def many_draws(network: Network[Any], X: Tensor, y: Tensor, Xq: Tensor) -> tuple[Tensor, Tensor]:
    """Gains at Xq, `q x 3`, and how reliable they are, `3`.

    That is the rank correlation two such references can be expected to have, from that of halves
    of the draws (Spearman and Brown).
    """
    reference = _with_many_draws(network)
    each = reference.gain(reference.condition(X[None], y[None]), Xq[None]).means[0]
    first, second = each[..., ::2].mean(-1), each[..., 1::2].mean(-1)  # q x 3
    agreement = torch.tensor(
        [rank_correlation(a, b) for a, b in zip(first.T, second.T, strict=True)]
    )
    return each.mean(-1), 2.0 * agreement / (1.0 + agreement)


def _with_many_draws(network: Network[Any]) -> KernelNetwork:
    landmarks = RepresenterConfig(count=POINTS, num_global=4 * POINTS, optima=DRAWS)
    if not isinstance(network, KernelNetwork):
        config = KernelConfig(encoder=None, landmarks=landmarks)
        return KernelNetwork(config, network.prior).eval()
    config = dataclasses.replace(network.config, landmarks=landmarks)
    other = KernelNetwork(config, network.prior)
    other.load_state_dict(network.state_dict())
    return other.eval()
