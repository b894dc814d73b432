import pytest
import torch
from torch import Tensor

from amortes.nets.base import GAINS
from amortes.nets.distributions import Riemann, asinh_borders
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.nets.kernel.conditioning import Moments
from amortes.nets.kernel.gain import (
    DRAW_FEATURES,
    QUERY_FEATURES,
    GainNetwork,
    draw_features,
    gain_unit,
    query_features,
)
from amortes.nets.kernel.sketch import Sketch, Terms
from amortes.prior.gp import PRIORS
from amortes.prior.posterior import exact_posterior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream


@pytest.fixture
def exact() -> TaskBatch:
    """Datasets of a prior without unknown hyperparameters: all particles are alike."""
    config = TaskConfig(batch_size=3, num_queries=9)
    return TaskStream(PRIORS["paper-1d"], 5, config).batch_of(0, 1, 6)


def sketched(network: KernelNetwork, task: TaskBatch) -> tuple[Sketch, Moments, Terms]:
    state = network.condition(task.X, task.y)
    network.gain(state, task.Xq)
    assert state.sketch is not None
    sketch = state.sketch
    at = sketch.conditioned.moments(task.Xq)
    marks = sketch.landmarks
    cross = sketch.conditioned.covariance(task.Xq, at, marks.X, marks.moments)
    return sketch, at, sketch.terms("jes", task.Xq, at, cross)


def test_features_of_a_known_process(exact: TaskBatch) -> None:
    sketch, at, terms = sketched(KernelNetwork(KernelConfig(), PRIORS["paper-1d"]), exact)
    mean, variance = exact.posterior_mean, exact.posterior_variance
    sd = variance.sqrt()
    at_data, _ = exact_posterior("se", exact.hyper, exact.X, exact.y, exact.X)
    best = at_data.amax(1, keepdim=True)
    reducible = (1 + variance / 0.01).log() / 2
    gain = terms.mean_gain
    unit = gain_unit(sketch.conditioned, at, gain)
    assert torch.allclose(unit, gain.clamp_min(0) + 0.002 * reducible + 1e-5, rtol=1e-6)

    features = query_features(sketch.conditioned, at, gain, unit)
    assert features.shape == (3, 9, QUERY_FEATURES)
    gap = mean - best
    for column, expected in enumerate([(gap / sd).asinh(), gap, sd.log(), reducible]):
        assert torch.allclose(features[..., column], expected, rtol=1e-5, atol=1e-5), column
    assert torch.allclose(features[..., 7], torch.tensor(0.1).double().log())  # the noise
    assert torch.allclose(features[..., 10], torch.tensor(0.0).double())  # log d

    draws = draw_features(sketch, at, terms, unit)
    f = sketch.optima.f[:, None]
    assert draws.shape == (3, 9, f.shape[-1], DRAW_FEATURES)
    assert torch.allclose(draws[..., 0].sinh() * unit[..., None], terms.gain)
    above = (f - best[..., None]).expand_as(draws[..., 2])
    assert torch.allclose(draws[..., 2], above, rtol=1e-5, atol=1e-5)
    standardised = ((f - mean[..., None]) / sd[..., None]).asinh()
    assert torch.allclose(draws[..., 3], standardised, rtol=1e-5, atol=1e-5)


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
