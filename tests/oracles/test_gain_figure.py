import io

import torch
from torch import Tensor

from amortes.oracles.brute_force import BruteForceConfig
from amortes.oracles.gain_figure import draw_gains
from amortes.oracles.smc import SMCConfig
from tests.oracles.fake import KnownNetwork


def gains(Xq: Tensor) -> Tensor:
    return torch.cat([Xq, -Xq, Xq.square()], dim=-1)


def test_figure_shows_three_ways_to_three_gains() -> None:
    config = BruteForceConfig(
        functions=1 << 11,
        hyperparameters=16,
        leaf=64,
        repeats=2,
        smc=SMCConfig(particles=64, final_particles=64),
    )
    calls: list[None] = []
    network = KnownNetwork(gains)
    figure = draw_gains(
        network, seed=1, context=5, config=config, on_repeat=lambda: calls.append(None)
    )
    assert len(calls) == 2
    axes = figure.axes
    assert len(axes) == 12
    assert [axis.get_title() for axis in axes[:2]] == [
        "exact GP",
        "Monte Carlo over the base network",
    ]
    assert [axes[3 * row].get_ylabel() for row in range(1, 4)] == [
        "PES (nats)",
        "MES (nats)",
        "JES (nats)",
    ]
    # The alpha column draws the network's own gains over the exact ones.
    exact, own = axes[5].lines[:2]
    assert torch.allclose(torch.as_tensor(own.get_ydata()), torch.linspace(0, 1, 128).double())
    assert torch.equal(
        torch.as_tensor(exact.get_ydata()), torch.as_tensor(axes[3].lines[0].get_ydata())
    )
    figure.savefig(io.BytesIO(), format="png")
