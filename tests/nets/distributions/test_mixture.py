import math

import pytest
import torch
from scipy import stats
from torch import Tensor

from amortes.errors import DataError
from amortes.nets.distributions import GaussianMixture, Predictive
from tests.nets.distributions.conformance import BATCH, DTYPES, PredictiveConformance


class TestGaussianMixture(PredictiveConformance):
    entropy_error = 5e-4
    cross_entropy_error = 2e-2

    def make(self, dtype: torch.dtype) -> Predictive:
        generator = torch.Generator().manual_seed(2)
        draws = torch.randn(3, *BATCH, 5, generator=generator, dtype=torch.float64)
        leaves = (draws[0], draws[1], (0.7 * draws[2] - 0.7).exp())
        self.leaves = [leaf.to(dtype).requires_grad_() for leaf in leaves]
        return GaussianMixture(*self.leaves)

    def parameters(self, predictive: Predictive) -> list[Tensor]:
        return self.leaves

    def edges(self) -> Tensor:
        return torch.linspace(-25.0, 25.0, 2000, dtype=torch.float64)


def random_mixture(k: int, dtype: torch.dtype) -> GaussianMixture:
    generator = torch.Generator().manual_seed(k)
    draws = torch.randn(3, 4, k, generator=generator, dtype=torch.float64)
    return GaussianMixture(*(t.to(dtype) for t in (2 * draws[0], draws[1], draws[2].exp())))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1, 2, 7])
def test_density_matches_scipy(dtype: torch.dtype, k: int) -> None:
    q = random_mixture(k, dtype)
    y = torch.linspace(-6.0, 6.0, 30, dtype=torch.float64)
    parts = stats.norm.pdf(y.numpy()[:, None, None], q.means.double(), q.sds.double())
    expected = (torch.from_numpy(parts) * q.weights.double()).sum(-1)
    torch.testing.assert_close(q.weights.sum(-1), torch.ones(4, dtype=dtype))
    actual = q.log_prob(y.to(dtype)[:, None])
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.double(), expected.log(), rtol=2e-5, atol=2e-5)


def test_quantiles_of_disjoint_and_nested_components() -> None:
    means = torch.tensor([[-1e4, 0.0, 1e4], [0.0, 0.0, 1e-3], [-5.0, 5.0, 0.0]]).double()
    sds = torch.tensor([[1e-3, 1.0, 50.0], [1e-6, 1.0, 1e4], [1e-4, 1e-4, 1e-4]]).double()
    log_weights = torch.tensor([[0.0, 0.0, 0.0], [0.0, -3.0, -20.0], [0.0, 0.0, -200.0]]).double()
    q = GaussianMixture(log_weights, means, sds)
    p = torch.tensor([1e-12, 1e-3, 0.2, 0.45, 0.55, 0.9, 1 - 1e-9]).double()[:, None]
    y = q.icdf(p)
    lower, upper = torch.minimum(p, 1 - p), torch.minimum(q.cdf(y), 1 - q.cdf(y))
    # The first and third have plateaus, where p is easily met but y is only roughly determined.
    torch.testing.assert_close(upper, lower.expand_as(upper), rtol=1e-5, atol=0)


@pytest.mark.parametrize("u", [-1e5, -300.0, -40.0, -8.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_log_improvement_far_in_the_tail(dtype: torch.dtype, u: float) -> None:
    # One component dominates; log(φ + uΦ) by its asymptotic series.
    q = GaussianMixture(*torch.tensor([[0.0, -3.0], [0.0, 0.0], [2.0, 0.1]], dtype=dtype))
    actual = q.log_expected_improvement(torch.tensor(-2.0 * u, dtype=dtype)).item()
    series = 1 - 3 / u**2 + 15 / u**4 - 105 / u**6 + 945 / u**8
    log_h = stats.norm.logpdf(u) - 2 * math.log(-u) + math.log(series)
    expected = q.log_weights[0].item() + math.log(2.0) + log_h
    assert actual == pytest.approx(expected, rel=3e-6 if dtype == torch.float32 else 1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_narrow_components_and_vanishing_weights(dtype: torch.dtype) -> None:
    leaves = [
        torch.tensor([0.0, -200.0, 1.0, -math.inf], dtype=dtype),
        torch.tensor([0.3, 40.0, -0.3, 0.0], dtype=dtype),
        torch.tensor([1e-6, 1e-6, 1.0, 1e-3], dtype=dtype),
    ]
    for leaf in leaves:
        leaf.requires_grad_()
    q = GaussianMixture(*leaves)
    y = torch.tensor([-40.0, 0.3, 0.30001, 40.0], dtype=dtype)
    values = [q.log_prob(y), q.cdf(y), q.log_expected_improvement(y), q.icdf(torch.sigmoid(y / 8))]
    values += [q.entropy(), q.mean, q.variance, q.probability_of_improvement(y)]
    values += [q.cross_entropy(y, torch.full_like(y, 1e-12))]
    for value in values:
        assert torch.isfinite(value).all()
        for gradient in torch.autograd.grad(
            value.sum(), leaves, retain_graph=True, allow_unused=True
        ):
            assert gradient is None or torch.isfinite(gradient).all()


def test_gradients_match_finite_differences() -> None:
    generator = torch.Generator().manual_seed(5)
    draws = torch.randn(3, 2, 4, generator=generator, dtype=torch.float64)
    leaves = [leaf.requires_grad_() for leaf in (draws[0], draws[1], draws[2].exp())]
    y = torch.tensor([[-1.7, 0.4], [0.9, 12.4]]).double().requires_grad_()
    p = torch.tensor([[0.02, 0.4], [0.6, 0.999]]).double().requires_grad_()

    def quantities(*inputs: Tensor) -> tuple[Tensor, ...]:
        q, y, p = GaussianMixture(*inputs[:3]), inputs[3], inputs[4]
        return (
            *(q.log_prob(y), q.cdf(y), q.probability_of_improvement(y), q.mean, q.variance),
            *(q.log_expected_improvement(y), q.icdf(p), q.cross_entropy(y, p)),
        )

    assert torch.autograd.gradcheck(quantities, (*leaves, y, p))


def test_parameters_broadcast() -> None:
    q = GaussianMixture(torch.zeros(2), torch.zeros(5, 1, 2), torch.ones(3, 1))
    assert q.batch_shape == (5, 3)
    assert q.entropy().shape == (5, 3)


@pytest.mark.parametrize(
    ("log_weights", "means", "sds", "message"),
    [
        ([0.0, 0.0], [0.0, 1.0], [1.0, 0.0], "minimum of 0"),
        ([0.0, 0.0], [0.0, 1.0], [1.0, math.nan], "positive"),
        ([0.0, 0.0], [0.0, math.nan], [1.0, 1.0], "finite"),
        ([0.0, math.nan], [0.0, 1.0], [1.0, 1.0], "finite"),
        ([-math.inf, -math.inf], [0.0, 1.0], [1.0, 1.0], "finite"),
    ],
)
def test_rejects_bad_parameters(
    log_weights: list[float], means: list[float], sds: list[float], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        GaussianMixture(*(torch.tensor(t) for t in (log_weights, means, sds)))
