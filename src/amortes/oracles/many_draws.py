"""Information gains beyond two dimensions, where brute force gives up: many draws of the optimum.

The closed form conditions on `DRAWS` draws of the optimum among `POINTS` representer points, of
`PARTICLES` particles: a reference for the error of fewer of either and for gains that are learned,
but not for the closed form itself, which brute force judges in one and two dimensions
(`amortes.oracles.brute_force`). A kernel network is compared with itself; others with one of their
prior in which nothing is learned.
"""

import dataclasses
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes.nets.base import GAINS, Network
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.nets.kernel.gains.drawn_gains import DrawnGains
from amortes.nets.kernel.optimum.representers import RepresenterConfig
from amortes.nets.kernel.optimum.thompson_draws import thompson_draws
from amortes.oracles.brute_force import rank_correlation
from amortes.training.recipes import build_network

DRAWS, POINTS, PARTICLES = 256, 256, 32
CONFIG = RepresenterConfig(count=POINTS, num_global=4 * POINTS, draws=DRAWS, optima=DRAWS)
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
    reference = _without_learned_gains(network)
    full = reference.condition(X[None], y[None]).conditioned.thinned(PARTICLES)
    gains = DrawnGains(full, thompson_draws(full, CONFIG))
    each = torch.stack([gains.at(name, Xq[None])[0] for name in GAINS], dim=1)  # q x 3 x draws
    first, second = each[..., ::2].mean(-1), each[..., 1::2].mean(-1)  # q x 3
    agreement = torch.tensor(
        [rank_correlation(a, b) for a, b in zip(first.T, second.T, strict=True)]
    )
    return each.mean(-1), 2.0 * agreement / (1.0 + agreement)


def variants(network: Network[Any]) -> dict[str, Network[Any]]:
    """The network as it is, with the gain network untrained, and with draws of the optimum instead.

    By name: learned, untrained, draws. Of what there is.
    """
    if not isinstance(network, KernelNetwork):
        return {"learned": network}
    drawn = _without_learned_gains(network)
    if network.gain_network is None:
        return {"draws": drawn}
    untrained = build_network("kernel", network.config, network.prior)
    # What is read is standardised all the same.
    parts = {f"gain_network.{name}": t for name, t in network.gain_network.named_buffers()}
    untrained.load_state_dict(drawn.state_dict() | parts, strict=False)
    return {"learned": network, "untrained": untrained.eval(), "draws": drawn}


def _without_learned_gains(network: Network[Any]) -> KernelNetwork:
    if not isinstance(network, KernelNetwork):
        return KernelNetwork(KernelConfig(encoder=None), network.prior).eval()
    config = dataclasses.replace(network.config, gains=None)
    other = build_network("kernel", config, network.prior)
    other.load_state_dict(network.state_dict(), strict=False)
    assert isinstance(other, KernelNetwork)
    return other.eval()
