"""Callers may have set torch's default to float64, as users of BoTorch do."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from amortes import Float, minimize
from amortes.corpora.corpus import Symmetry
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.pretrained import names, weights_path
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskConfig, TaskStream
from amortes.random import generator
from amortes.training.export import load_network
from tests.pretrained.golden import data


@pytest.fixture
def float64_default() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@torch.no_grad()
def gains(name: str) -> Tensor:
    network, _ = load_network(weights_path(name))
    X, y, Xq = data(1, 4)
    return network.gain(network.condition(X, y), Xq).mean


@pytest.mark.parametrize("name", names())
def test_shipped_networks_say_the_same(name: str, request: pytest.FixtureRequest) -> None:
    before = gains(name)
    request.getfixturevalue("float64_default")
    assert torch.equal(gains(name), before)


@pytest.mark.usefixtures("float64_default")
def test_kernel_networks_have_float32_weights() -> None:
    network = KernelNetwork(KernelConfig(), PRIORS["paper"])
    assert {p.dtype for p in network.parameters()} == {torch.float32}


@pytest.mark.usefixtures("float64_default")
def test_a_few_trials() -> None:
    network, _ = load_network(weights_path("kernel-real"))
    space = {"x": Float(0.0, 1.0)}
    result = minimize(
        lambda c: (c["x"] - 0.3) ** 2, space, 8, network=network, errors="raise", progress=False
    )
    assert abs(result.x["x"] - 0.3) < 0.1


def test_tasks_are_the_same(request: pytest.FixtureRequest) -> None:
    stream = TaskStream(PRIORS["robust"], 3, TaskConfig(batch_size=4, num_queries=6))
    before, symmetry = stream.batch(5), Symmetry.random(4, 3, generator(1))
    request.getfixturevalue("float64_default")
    after, again = stream.batch(5), Symmetry.random(4, 3, generator(1))
    for name in ("X", "y", "Xq", "near_optimum", "fq", "posterior_mean"):
        assert torch.equal(getattr(after, name), getattr(before, name)), name
    assert torch.equal(again.order, symmetry.order)
    assert torch.equal(again.mirror, symmetry.mirror)
