import math

import pytest
import torch
from scipy import stats
from torch import Tensor

from amortes.errors import ConfigError, DataError
from amortes.nets.distributions import Predictive, Riemann, asinh_borders, fit_borders
from tests.nets.distributions.conformance import BATCH, DTYPES, PredictiveConformance

BORDERS = torch.tensor([-2.5, -1.4, -0.9, -0.2, 0.0, 0.1, 0.5, 1.3, 2.0, 2.2], dtype=torch.float64)


class TestRiemann(PredictiveConformance):
    def make(self, dtype: torch.dtype) -> Predictive:
        logits = torch.randn(
            *BATCH, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64
        )
        self.logits = (1.5 * logits).to(dtype).requires_grad_()
        return Riemann(self.logits, BORDERS)

    def parameters(self, predictive: Predictive) -> list[Tensor]:
        return [self.logits]

    def edges(self) -> Tensor:
        left = torch.linspace(-20.0, -1.4, 40).double()
        right = torch.linspace(2.0, 6.0, 40).double()
        return torch.cat([left[:-1], BORDERS[1:-1], right[1:]])


def random_riemann(m: int, dtype: torch.dtype, spread: float = 2.0) -> Riemann:
    generator = torch.Generator().manual_seed(m)
    widths = torch.rand(m + 1, generator=generator, dtype=torch.float64) + 0.05
    logits = spread * torch.randn(*BATCH, m, generator=generator, dtype=torch.float64)
    return Riemann(logits.to(dtype), widths.cumsum(0) - 0.3 * m)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [3, 4, 17])
def test_density_bar_by_bar(dtype: torch.dtype, m: int) -> None:
    predictive = random_riemann(m, dtype)
    borders = predictive.borders.double()
    probs = predictive.log_probs.double().exp()
    half_mass = stats.halfnorm.ppf(0.5)
    left_scale = float(borders[1] - borders[0]) / half_mass
    right_scale = float(borders[-1] - borders[-2]) / half_mass
    for y in torch.linspace(float(borders[0]) - 1.0, float(borders[-1]) + 1.0, 50).tolist():
        bar = min(max(int((borders[1:-1] <= y).sum()), 0), m - 1)
        if bar == 0:
            density = stats.halfnorm.pdf(float(borders[1]) - y, scale=left_scale)
        elif bar == m - 1:
            density = stats.halfnorm.pdf(y - float(borders[-2]), scale=right_scale)
        else:
            density = 1.0 / float(borders[bar + 1] - borders[bar])
        actual = predictive.log_prob(torch.tensor(y, dtype=dtype)).double()
        torch.testing.assert_close(actual.exp(), probs[..., bar] * density, rtol=1e-4, atol=1e-7)


def test_half_of_a_tail_lies_within_its_bar() -> None:
    predictive = random_riemann(6, torch.float64)
    probs = predictive.log_probs.exp()
    torch.testing.assert_close(predictive.cdf(predictive.borders[0]), 0.5 * probs[..., 0])
    beyond = predictive.probability_of_improvement(predictive.borders[-1])
    torch.testing.assert_close(beyond, 0.5 * probs[..., -1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_probabilities_of_improvement_keep_their_digits(dtype: torch.dtype) -> None:
    q = Riemann(torch.tensor([0.0, 0.0, -20.0], dtype=dtype), torch.tensor([0.0, 1.0, 2.0, 3.0]))
    for best in (1.999, 2.5, 8.0):
        u = max(best - 2.0, 0.0) * stats.norm.ppf(0.75)
        expected = math.exp(-20.0) * 2 * stats.norm.sf(u) + max(2.0 - best, 0.0)
        expected /= 2.0 + math.exp(-20.0)
        actual = q.probability_of_improvement(torch.tensor(best, dtype=dtype)).item()
        assert actual == pytest.approx(expected, rel=1e-4 if dtype == torch.float32 else 1e-9)


@pytest.mark.parametrize("best", [10.0, 100.0, 1e4])
def test_log_improvement_far_above_follows_the_half_normal(best: float) -> None:
    predictive = random_riemann(5, torch.float64)
    anchor, scale = predictive.anchor[-1].item(), predictive.scale[-1].item()
    u = (best - anchor) / scale
    # log of φ(u) / u² (1 - 3/u² + 15/u⁴): the asymptotic expansion of φ - u (1 - Φ).
    log_tail = stats.norm.logpdf(u) - 2 * torch.tensor(u).double().log().item()
    series = torch.tensor(1 - 3 / u**2 + 15 / u**4).double().log().item()
    expected = predictive.log_probs[..., -1] + torch.tensor(2 * scale).double().log() + log_tail
    actual = predictive.log_expected_improvement(torch.tensor(best).double())
    torch.testing.assert_close(actual, expected + series, rtol=1e-4, atol=0.02)


def test_gradients_match_finite_differences() -> None:
    generator = torch.Generator().manual_seed(5)
    logits = torch.randn(2, 7, generator=generator, dtype=torch.float64, requires_grad=True)
    borders = torch.tensor([-3.0, -2.0, -1.0, 0.1, 0.7, 1.0, 2.0, 2.5]).double()
    y = torch.tensor([[-2.7, 0.4], [0.9, 2.4]]).double().requires_grad_()
    variance = torch.tensor([0.3, 2.0]).double().requires_grad_()

    def quantities(logits: Tensor, y: Tensor, variance: Tensor) -> tuple[Tensor, ...]:
        q = Riemann(logits, borders)
        return (
            *(q.log_prob(y), q.cdf(y), q.probability_of_improvement(y), q.mean, q.variance),
            *(q.log_expected_improvement(y), q.expected_improvement(y), q.entropy()),
            *(q.cross_entropy(y, variance), q.icdf(torch.sigmoid(y))),
        )

    assert torch.autograd.gradcheck(quantities, (logits, y, variance))


@pytest.mark.parametrize("dtype", DTYPES)
def test_five_thousand_bars(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    samples = torch.randn(200_000, generator=generator, dtype=torch.float64)
    borders = fit_borders(samples, 5000)
    # Bars filled with a standard normal must give back what is known of it.
    edges = borders[1:-1]
    cdf = torch.cat([torch.zeros(1), torch.special.ndtr(edges), torch.ones(1)]).double()
    logits = cdf.diff().log().to(dtype).expand(2, 3, 5000).clone().requires_grad_()
    q = Riemann(logits, borders)
    one = torch.ones((), dtype=dtype)
    known = float(stats.norm.entropy())
    assert abs(q.entropy()[0, 0].item() - known) < 1e-3
    assert abs(q.mean[0, 0].item()) < 1e-3
    assert abs(q.variance[0, 0].item() - 1.0) < 5e-3
    assert abs(q.cross_entropy(0.0 * one, one)[0, 0].item() - known) < 2e-3
    y = torch.linspace(-3.0, 3.0, 50, dtype=dtype)[:, None, None]
    torch.testing.assert_close(q.cdf(y), torch.special.ndtr(y).expand(50, 2, 3), rtol=0, atol=1e-4)
    back = q.icdf(q.cdf(y)).detach()
    torch.testing.assert_close(back, y.expand(50, 2, 3), rtol=0, atol=2e-3)
    loss = q.cross_entropy(y, 0.1 * one).mean() + q.log_prob(y).mean()
    (gradient,) = torch.autograd.grad(loss, logits)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_vanishing_probabilities(dtype: torch.dtype) -> None:
    logits = torch.tensor([0.0, -200.0, -200.0, 3.0, -200.0], dtype=dtype, requires_grad=True)
    q = Riemann(logits, torch.tensor([-3.0, -2.0, -1.0, 0.0, 1.0, 1.0 + 1e-5]))
    y = torch.tensor([-1.5, 0.5, 1.0, 1.0001], dtype=dtype)
    values = [q.log_prob(y), q.cdf(y), q.icdf(torch.sigmoid(y)), q.log_expected_improvement(y)]
    values += [q.entropy(), q.cross_entropy(y, 1e-12 * torch.ones_like(y))]
    for value in values:
        assert torch.isfinite(value).all()
        (gradient,) = torch.autograd.grad(value.sum(), logits, retain_graph=True)
        assert torch.isfinite(gradient).all()


def test_rejects_bad_input() -> None:
    with pytest.raises(ConfigError, match="strictly increasing"):
        Riemann(torch.zeros(3), torch.tensor([0.0, 1.0, 1.0, 2.0]))
    with pytest.raises(DataError, match="need 6 borders"):
        Riemann(torch.zeros(5), torch.tensor([0.0, 1.0, 1.5, 2.0]))
    q = Riemann(torch.zeros(2, 4), asinh_borders(4, 2.0, 0.1))
    with pytest.raises(DataError, match="all positive or all negative"):
        q.affine(torch.tensor([1.0, -1.0]), torch.zeros(2))


def test_other_probabilities_of_the_same_bars() -> None:
    rng = torch.Generator().manual_seed(2)
    borders = asinh_borders(6, 2.0, 0.1)
    first, second = torch.randn(2, 3, 6, generator=rng, dtype=torch.float64)
    found, expected = Riemann(first, borders).like(second), Riemann(second, borders)
    assert torch.equal(found.mean, expected.mean)
    assert torch.equal(found.variance, expected.variance)
    assert torch.equal(found[1:].log_probs, expected.log_probs[1:])


@pytest.mark.parametrize("dtype", DTYPES)
def test_blend_runs_from_equal_mass_to_equal_width(dtype: torch.dtype) -> None:
    samples = torch.randn(20_000, generator=torch.Generator().manual_seed(0), dtype=dtype)
    mass, both, width = (fit_borders(samples, 50, blend) for blend in (0.0, 0.5, 1.0))
    assert {t.dtype for t in (mass, both, width)} == {dtype}
    inside = torch.histogram(samples, mass).hist
    torch.testing.assert_close(inside, torch.full_like(inside, 20_000 / 51), rtol=0.02, atol=1.0)
    torch.testing.assert_close(width.diff(), torch.full_like(inside, width.diff()[0].item()))
    torch.testing.assert_close(both, 0.5 * (mass + width))
    # The point of the blend: the last bars are finer than with equal mass.
    assert both.diff()[-1] < 0.65 * mass.diff()[-1]


def test_quantiles_match_torch() -> None:
    samples = torch.rand(7, 13, generator=torch.Generator().manual_seed(0)).double()
    levels = (torch.arange(6).double() + 0.5) / 6
    torch.testing.assert_close(fit_borders(samples, 5, 0.0), samples.flatten().quantile(levels))


def test_tied_samples_need_a_blend() -> None:
    samples = torch.tensor([0.0] * 90 + [1.0] * 10)
    with pytest.raises(ConfigError, match="strictly increasing"):
        fit_borders(samples, 10, 0.0)
    assert (fit_borders(samples, 10, 0.1).diff() > 0).all()


def test_asinh_borders_are_symmetric_and_even_in_asinh() -> None:
    borders = asinh_borders(40, 5.0, 0.01)
    assert torch.equal(borders, -borders.flip(0))
    assert borders[-1].item() == pytest.approx(5.0)
    steps = torch.asinh(borders / 0.01).diff()
    torch.testing.assert_close(steps, torch.full_like(steps, steps.mean().item()))


@pytest.mark.parametrize(
    ("borders", "message"),
    [
        (torch.tensor([0.0, 1.0, 2.0]), "at least 4"),
        (torch.zeros(2, 5), "at least 4"),
        (torch.tensor([0.0, 1.0, torch.inf, 3.0]), "finite"),
        (torch.tensor([0.0, 1.0, 0.5, 3.0]), r"borders\[1\] = 1 is followed by 0.5"),
    ],
)
def test_bad_borders(borders: Tensor, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Riemann(torch.zeros(borders.shape[-1] - 1, dtype=borders.dtype), borders)


def test_bad_arguments_of_borders() -> None:
    with pytest.raises(ConfigError, match="blend"):
        fit_borders(torch.randn(10, generator=torch.Generator()), 5, 1.5)
    with pytest.raises(ConfigError, match="finite"):
        fit_borders(torch.tensor([1.0, torch.nan]), 5)
    with pytest.raises(ConfigError, match="finite"):
        fit_borders(torch.tensor([1.0]), 5)
    with pytest.raises(ConfigError, match="positive"):
        asinh_borders(10, 1.0, 0.0)
