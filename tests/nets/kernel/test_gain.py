import pytest
import torch
from torch import Tensor

from amortes.nets.base import GAINS
from amortes.nets.distributions import Riemann, asinh_borders
from amortes.nets.kernel import KernelNetwork
from amortes.nets.kernel.features import DRAW_FEATURES, QUERY_FEATURES
from amortes.nets.kernel.gain import GainNetwork
from amortes.prior.tasks import TaskBatch


def test_the_untrained_network_predicts_the_unit_and_draws_have_no_order() -> None:
    rng = torch.Generator().manual_seed(3)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = GainNetwork(16, 2, 160)
        borders = asinh_borders(160, limit=300.0, linear=0.5)
        network.start_at(1.0, borders)
    network = network.double()
    draws = torch.randn(2, 5, 7, DRAW_FEATURES, generator=rng, dtype=torch.float64)
    queries = torch.randn(2, 5, QUERY_FEATURES, generator=rng, dtype=torch.float64)
    logits = network(draws, queries)
    mean = Riemann(logits, borders).mean
    assert ((mean > 0.7) & (mean < 1.3)).all()
    assert torch.allclose(network(draws.flip(2), queries), logits)
    assert not torch.allclose(network(draws + 1, queries), logits, atol=1e-4)


def test_gradients_are_finite_at_observed_points(network: KernelNetwork, task: TaskBatch) -> None:
    for X, y in ((task.X, task.y), (task.X[:, :1], task.y[:, :1])):
        state = network.condition(X, y)
        Xq = X.clone().requires_grad_()
        mean = network.gain(state, Xq).mean
        (gradient,) = torch.autograd.grad(mean.sum(), Xq)
        assert mean.isfinite().all()
        assert gradient.isfinite().all()


@pytest.mark.parametrize("name", GAINS)
def test_gradients_against_differences(network: KernelNetwork, task: TaskBatch, name: str) -> None:
    network = network.double()
    state = network.condition(task.X, task.y)

    def value(X: Tensor) -> Tensor:
        return network.gain(state, X, (name,)).mean.sum()

    Xq = task.Xq[:, :4].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(value(Xq), Xq)
    h = 1e-5
    for i, j, k in ((0, 0, 0), (1, 2, 1), (2, 3, 0)):
        shift = torch.zeros_like(Xq)
        shift[i, j, k] = h
        slope = float((value(Xq + shift) - value(Xq - shift)).detach()) / (2 * h)
        assert float(gradient[i, j, k]) == pytest.approx(slope, rel=1e-5, abs=1e-9)
