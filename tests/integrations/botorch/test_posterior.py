import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.sampling.get_sampler import get_sampler
from botorch.sampling.normal import SobolQMCNormalSampler
from scipy import stats

from amortes.integrations.botorch import PredictivePosterior
from amortes.nets.distributions import GaussianMixture

CORRELATION = torch.tensor([[1.0, 0.8], [0.8, 1.0]], dtype=torch.float64)


def mixture(*batch: int) -> GaussianMixture:
    means = torch.linspace(-1.0, 2.0, 3, dtype=torch.float64).expand(*batch, 3)
    return GaussianMixture(torch.zeros_like(means), means, torch.full_like(means, 0.3))


def posterior(*batch: int) -> PredictivePosterior:
    return PredictivePosterior(mixture(*batch, 2), CORRELATION.expand(*batch, 2, 2))


def test_shapes() -> None:
    p = posterior(4)
    assert p.mean.shape == p.variance.shape == (4, 2, 1)
    assert p.rsample().shape == (4, 2, 1)
    assert p.rsample(torch.Size([5, 3])).shape == (5, 3, 4, 2, 1)
    assert p._extended_shape(torch.Size([5])) == (5, 4, 2, 1)
    assert p.quantile(torch.tensor(0.3)).shape == (4, 2, 1)
    assert p.density(torch.tensor([0.1, 0.2, 0.3])).shape == (3, 4, 2, 1)
    assert p.batch_shape == (4,)
    assert (p.dtype, p.device.type) == (torch.float64, "cpu")


def test_quantiles_and_density_are_those_of_the_mixture() -> None:
    p = posterior(4)
    levels = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    quantiles = p.quantile(levels)
    for level, quantile in zip(levels, quantiles, strict=True):
        assert torch.allclose(p.mixture.cdf(quantile[..., 0]), level.expand(4, 2))
    at = torch.tensor([0.2], dtype=torch.float64)
    assert torch.allclose(p.density(at)[..., 0], p.mixture.log_prob(at[0]).exp())


def test_samples_have_the_marginals_and_the_dependence() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        draws = posterior().rsample(torch.Size([4000])).squeeze(-1)
    law = mixture()

    for i in range(2):
        uniform = law.cdf(draws[:, i])
        assert stats.kstest(uniform.numpy(), "uniform").pvalue > 1e-3
    ranks = stats.spearmanr(draws[:, 0].numpy(), draws[:, 1].numpy()).statistic
    # Spearman's correlation of a Gaussian copula.
    expected = 6.0 / torch.pi * torch.asin(torch.tensor(0.4))
    assert float(ranks) == pytest.approx(float(expected), abs=0.03)


def test_samples_are_differentiable_in_the_distribution() -> None:
    means = torch.tensor([[0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    law = GaussianMixture(torch.zeros_like(means), means, torch.ones_like(means))
    base = torch.tensor([0.7], dtype=torch.float64)
    sample = PredictivePosterior(law, None).rsample_from_base_samples(torch.Size(), base)
    (slope,) = torch.autograd.grad(sample.sum(), means)
    # Shifting both components shifts the sample.
    assert float(slope.sum()) == pytest.approx(1.0)


def test_botorch_finds_a_sampler_that_shares_base_samples_over_batches() -> None:
    p = posterior(4)
    sampler = get_sampler(p, torch.Size([16]), seed=1)
    assert isinstance(sampler, SobolQMCNormalSampler)
    draws = sampler(p)
    assert draws.shape == (16, 4, 2, 1)
    assert torch.allclose(draws[:, 0], draws[:, 3])
    assert torch.equal(draws, sampler(p))


def test_joint_samples_need_to_know_the_dependence() -> None:
    alone = PredictivePosterior(mixture(4, 1), None)
    assert alone.rsample(torch.Size([2])).shape == (2, 4, 1, 1)
    with pytest.raises(UnsupportedError, match="q > 1"):
        PredictivePosterior(mixture(4, 2), None).rsample()
    with pytest.raises(RuntimeError, match="base_samples must be"):
        alone.rsample_from_base_samples(torch.Size([2]), torch.zeros(3, 4, 1))
