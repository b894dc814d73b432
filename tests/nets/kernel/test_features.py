import pytest
import torch

from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.nets.kernel.features import DRAW_FEATURES, QUERY_FEATURES, Describer
from amortes.prior.gp import PRIORS
from amortes.prior.posterior import exact_posterior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream


@pytest.fixture
def exact() -> TaskBatch:
    """Datasets of a prior without unknown hyperparameters: all particles are alike."""
    config = TaskConfig(batch_size=3, num_queries=9)
    return TaskStream(PRIORS["paper-1d"], 5, config).batch_of(0, 1, 6)


def test_features_of_a_known_process(exact: TaskBatch) -> None:
    network = KernelNetwork(KernelConfig(), PRIORS["paper-1d"])
    state = network.condition(exact.X, exact.y)
    network.gain(state, exact.Xq)
    assert state.gains is not None
    sketch = state.gains[0]
    terms = sketch.terms("jes", exact.Xq)
    found = Describer.of(sketch).describe(terms)
    mean, variance = exact.posterior_mean, exact.posterior_variance
    sd = variance.sqrt()
    at_data, _ = exact_posterior("se", exact.hyper, exact.X, exact.y, exact.X)
    best = at_data.amax(1, keepdim=True)
    reducible = (1 + variance / 0.01).log() / 2
    gain, unit = terms.mean_gain, found.unit
    # The unit is the gain, but never zero: a little of the most there is to gain is added.
    assert (unit > gain).all()
    assert (unit > 0).all()
    assert (unit - gain.clamp_min(0) < 0.01 * reducible + 1e-4).all()

    features = found.queries
    assert features.shape == (3, 9, QUERY_FEATURES)
    gap = mean - best
    for column, expected in enumerate([(gap / sd).asinh(), gap, sd.log(), reducible]):
        assert torch.allclose(features[..., column], expected, rtol=1e-5, atol=1e-5), column
    assert torch.allclose(features[..., 5], unit.log() / 3)
    assert torch.allclose(features[..., 6], gain / unit)
    assert torch.allclose(features[..., 7], torch.tensor(0.1).double().log())  # the noise
    assert torch.allclose(features[..., 9], torch.tensor(6.0).double().log() / 3)  # log n / 3
    assert torch.allclose(features[..., 10], torch.tensor(0.0).double())  # log d

    draws, f = found.draws, sketch.optima.f[:, None]
    assert draws.shape == (3, 9, f.shape[-1], DRAW_FEATURES)
    assert torch.allclose(draws[..., 0].sinh() * unit[..., None], terms.gain)
    assert torch.allclose(draws[..., 1].sinh(), terms.shift)
    above = (f - best[..., None]).expand_as(draws[..., 2])
    assert torch.allclose(draws[..., 2], above, rtol=1e-5, atol=1e-5)
    standardised = ((f - mean[..., None]) / sd[..., None]).asinh()
    assert torch.allclose(draws[..., 3], standardised, rtol=1e-5, atol=1e-5)
