import math

import pytest

from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Categorical, Float, Int, Linear, Optimizer, Space

MIXED = Space(
    {
        "lr": Float(1e-5, 1e-1, log=True),
        "layers": Int(1, 8),
        "width": Int(8, 1024, log=True),
        "act": Categorical(["relu", "gelu", "tanh"]),
        "seed": 7,
    },
    [Linear({"layers": 100.0, "width": 1.0}, upper=1200.0)],
)


@pytest.fixture(scope="session")
def opt(network: KernelNetwork) -> Optimizer:
    """A run with past, failed, infeasible and pending trials."""
    past = {"lr": 1e-2, "layers": 2, "width": 64, "act": "relu"}
    opt = Optimizer(MIXED, network=network, acquisition="logei", start=[(past, 0.9)])
    for i in range(10):
        trial = opt.ask()
        value = 0.2 * (math.log10(trial["lr"]) + 3) ** 2 + 0.05 * abs(trial["layers"] - 5)
        if i == 2:
            opt.tell(trial, failed=True)
        elif i == 4:
            opt.tell(trial, value, violation=2.0)
        else:
            opt.tell(trial, value + 0.3)
    opt.ask()
    return opt
