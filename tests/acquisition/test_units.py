import math

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.acquisition.fitted import Fitted, fit_warped
from amortes.acquisition.units import (
    BEYOND,
    LEAST_POINTS,
    POWERS,
    Units,
    check_values,
    milestones,
    without_spread,
)
from amortes.errors import DataError
from amortes.nets.distributions import GaussianMixture
from amortes.nets.kernel import KernelNetwork
from amortes.nets.transformer import Transformer, TransformerConfig
from amortes.prior.gp import PRIORS
from amortes.random import generator


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(("maximise", "sign"), [(True, 1.0), (False, -1.0)])
def test_mean_and_standard_deviation(maximise: bool, sign: float) -> None:
    y = np.random.default_rng(0).normal(7.0, 3.0, 20)
    units = Units.of(torch.from_numpy(y), maximise=maximise)
    expected = sign * (y - y.mean()) / y.std(ddof=1)
    assert np.allclose(units.to_network(torch.from_numpy(y)).numpy(), expected)


@pytest.mark.parametrize(
    ("y", "scale"),
    [
        (column(5.0), 5.0),
        (column(-3.0, -3.0, -3.0), 3.0),
        (column(0.0, 0.0), 1.0),
        (column(1e9, 1e9 + 1e-5), 1e9),  # the difference is rounding
        (column(1e-200, -1e-200), 1.0),
        (column(1e9, 1e9 + 1.0), math.sqrt(0.5)),
        (column(1e-60, -1e-60), math.sqrt(2.0) * 1e-60),
        (column(1e99, -1e99), math.sqrt(2.0) * 1e99),
    ],
)
def test_a_scale_for_any_data(y: Tensor, scale: float) -> None:
    units = Units.of(y, maximise=True)
    assert units.scale * units.sd == pytest.approx(scale)
    assert units.to_network(y).abs().max() <= 1.0


def test_values_that_would_overflow_are_refused() -> None:
    with pytest.raises(DataError, match="1e\\+120"):
        Units.of(column(0.0, 1e120), maximise=True)


@pytest.mark.parametrize("maximise", [True, False])
def test_distributions_come_back(maximise: bool) -> None:
    y = column(3.0, 8.0, 4.0)
    units = Units.of(y, maximise=maximise)
    z = units.to_network(y)[:, None]
    at = GaussianMixture(torch.zeros_like(z), z, torch.full_like(z, 0.1))
    assert torch.allclose(units.to_user(at).mean, y)
    assert torch.allclose(units.to_user(at).sd, 0.1 * y.std())


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (column(1.0, 2.0), r"shape \(3,\), not \(2,\)"),
        (torch.ones(3, 1, dtype=torch.float64), r"not \(3, 1\)"),
        (torch.ones(3), "float64, not torch.float32"),
        (torch.ones(3, dtype=torch.int64), "float64, not torch.int64"),
        (column(1.0, math.nan, 2.0), r"rows \[1\]"),
        (column(math.inf, 0.0, -math.inf), r"rows \[0, 2\]"),
    ],
)
def test_bad_values(y: Tensor, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_values(y, 3)


def test_values_are_finite_though_their_sum_is_not() -> None:
    large = column(1e308, 1e308, 1.0)
    check_values(large, 3)
    with pytest.raises(DataError, match=r"rows \[2\]"):
        check_values(torch.where(large == 1.0, math.nan, large), 3)


def test_spreads_that_count_as_none() -> None:
    assert without_spread(column(3.0))
    assert without_spread(column(1.0, 1.0 + 1e-14, 1.0))
    assert without_spread(column(1e-120, 3e-120))
    assert not without_spread(column(1.0, 1.0 + 1e-11, 1.0))
    assert not without_spread(column(0.0, 1e-90))


SOME_POWERS = (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0)


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("power", SOME_POWERS)
def test_powers_there_and_back(power: float, maximise: bool) -> None:
    y = torch.from_numpy(np.random.default_rng(0).lognormal(1.0, 1.0, 40))
    units = Units.of(y, maximise=maximise).with_power(power, y)
    z = units.to_network(y)
    assert float(z.mean()) == pytest.approx(0.0, abs=1e-9)
    assert float(z.std()) == pytest.approx(1.0)
    assert torch.allclose(units.value(z), y, rtol=1e-7)
    # Bigger is better in the network's units.
    assert torch.equal(z.argsort(), (y if maximise else -y).argsort())
    at = y.clone().requires_grad_()
    (slope,) = torch.autograd.grad(units.to_network(at).sum(), at)
    assert torch.allclose(units.log_slope(y), slope.abs().log(), atol=1e-9)


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("power", SOME_POWERS)
def test_distributions_of_powers_come_back(power: float, maximise: bool) -> None:
    y = torch.from_numpy(np.random.default_rng(0).lognormal(1.0, 0.5, 40))
    units = Units.of(y, maximise=maximise).with_power(power, y)
    z = units.to_network(y)[:5, None]
    at = GaussianMixture(torch.zeros_like(z), z, torch.full_like(z, 0.3))
    user = units.to_user(at)
    half = torch.tensor(0.5, dtype=torch.float64)
    assert torch.allclose(user.icdf(half), y[:5], rtol=1e-6)
    # A density of z at z(y), times dz/dy.
    density = at.log_prob(units.to_network(y[:5])) + units.log_slope(y[:5])
    assert torch.allclose(user.log_prob(y[:5]), density, atol=1e-9)


def test_values_are_not_believed_far_beyond_the_data() -> None:
    y = column(1.0, 2.0, 4.0, 8.0, 3.0)
    units = Units.of(y, maximise=True).with_power(-1.0, y)
    ends = units.value(column(-1e6, 1e6))
    reach = BEYOND * max(float(y.max() - y.min()), units.scale)
    assert ends.tolist() == pytest.approx([1.0 - reach, 8.0 + reach])


def test_the_bulk_gives_the_scale() -> None:
    y = torch.cat([torch.linspace(-1.0, 1.0, 41, dtype=torch.float64), column(1e30)])
    units = Units.of(y, maximise=False)
    assert units.centre == pytest.approx(0.0, abs=0.1)
    assert 0.5 < units.scale < 1.0
    # Most are equal: then the standard deviation.
    mostly = column(*([2.0] * 20), 5.0)
    assert Units.of(mostly, maximise=True).scale == pytest.approx(float(mostly.std()))


@pytest.mark.parametrize(
    "y",
    [
        column(0.3, -1.2, 4.0, 2.2, 0.0),
        column(1.0, 2.0, 1.5, -1e30),
        1.0 + 1e-16 * column(0.0, 1.0, 3.0, 2.0),
    ],
)
def test_several_powers_are_those_one_by_one(y: Tensor) -> None:
    plain = Units.of(y, maximise=True)
    units, z, slope = plain.with_powers(SOME_POWERS, y)
    assert plain.power in [each.power for each in units]
    for i, each in enumerate(units):
        alone = plain.with_power(each.power, y)
        assert (each.mean, each.sd) == pytest.approx((alone.mean, alone.sd), rel=1e-12)
        torch.testing.assert_close(z[i], alone.to_network(y), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(slope[i], alone.log_slope(y), rtol=1e-9, atol=1e-9)
    left_out = set(SOME_POWERS) - {each.power for each in units}
    assert not any(bool(plain.with_power(p, y).to_network(y).isfinite().all()) for p in left_out)


def smooth(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Points and standardised values of a smooth function, hardly any noise."""
    rng = generator(seed, n)
    X = torch.rand(n, 2, generator=rng, dtype=torch.float64)
    g = (4.0 * X[:, 0]).sin() + (3.0 * X[:, 1]).cos() + X[:, 0] * X[:, 1]
    g = g + 0.01 * torch.randn(n, generator=rng, dtype=torch.float64)
    return X, (g - g.mean()) / g.std()


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize(
    ("name", "low", "high"), [("exp", -1.0, 0.5), ("reciprocal", -1.0, 0.5), ("log", 1.5, 3.0)]
)
def test_skewed_results_are_straightened(
    network: KernelNetwork, name: str, low: float, high: float, maximise: bool
) -> None:
    X, g = smooth(30)
    y = {"exp": (1.5 * g).exp(), "reciprocal": 1.0 / (3.5 - g), "log": (2.6 + g).log()}[name]
    fitted = fit_warped(network, X, y, maximise=maximise)
    # With -y, as if minimised, T is mirrored: 2 - λ.
    power = fitted.units.power if maximise else 2.0 - fitted.units.power
    if name != "reciprocal":  # not much more skewed than the function itself
        assert low <= power <= high
    plain = Fitted(network, X, y, maximise=maximise)
    assert fitted.log_evidence is not None
    assert plain.log_evidence is not None
    assert fitted.log_evidence > plain.log_evidence - 0.5


def test_gaussian_results_stay_as_they_are(network: KernelNetwork) -> None:
    for seed in range(3):
        X, g = smooth(25, seed)
        y = 1e3 + 20.0 * g
        fitted = fit_warped(network, X, y, maximise=True)
        assert 0.5 <= fitted.units.power <= 1.5


@pytest.mark.parametrize("maximise", [True, False])
def test_predictions_are_calibrated_in_the_units_of_the_user(
    network: KernelNetwork, maximise: bool
) -> None:
    X, g = smooth(120)
    y = 5.0 + (2.0 * g).exp()
    fitted = fit_warped(network, X[:30], y[:30], maximise=maximise)
    plain = Fitted(network, X[:30], y[:30], maximise=maximise)
    test = y[30:]
    q = fitted.predict(X[30:])
    assert q.log_prob(test).mean() > plain.predict(X[30:]).log_prob(test).mean() + 0.3
    level = q.cdf(test)
    assert 0.6 < ((level > 0.05) & (level < 0.95)).double().mean() <= 1.0
    median = fitted.posterior_mean(X[30:])
    error, theirs = (median - test).abs(), (plain.posterior_mean(X[30:]) - test).abs()
    assert error.median() < theirs.median()
    # Scores rank as the user would, whatever the direction.
    order = fitted.score("mean", X[30:]).argsort(descending=True)
    top = test[order[:9]].mean()
    assert top > test.mean() if maximise else top < test.mean()


@pytest.mark.parametrize("outlier", [1e30, -1e30, 1e99])
@pytest.mark.parametrize("maximise", [True, False])
def test_outliers_are_survived(network: KernelNetwork, outlier: float, maximise: bool) -> None:
    X, g = smooth(20)
    y = g.clone()
    y[7] = outlier
    fitted = fit_warped(network, X, y, maximise=maximise)
    for name in ("jes", "logei", "ei", "ucb", "mean"):
        assert fitted.score(name, X).isfinite().all()
    assert fitted.posterior_mean(X).isfinite().all()
    assert fitted.predict(X).icdf(torch.tensor(0.5, dtype=torch.float64)).isfinite().all()


@pytest.mark.parametrize("outlier", [1e4, 1e30])
def test_a_bad_outlier_does_not_hide_the_others(network: KernelNetwork, outlier: float) -> None:
    X, g = smooth(30)
    y = g.clone()
    y[7] = outlier
    fitted = fit_warped(network, X, y, maximise=False)
    others = torch.arange(30) != 7
    mean = fitted.posterior_mean(X)[others]
    both = torch.stack([mean.argsort().argsort(), g[others].argsort().argsort()]).double()
    assert torch.corrcoef(both)[0, 1] > 0.9


@pytest.mark.parametrize(
    "values", [[3.0], [1.0, 2.0], [4.0, 4.0, 4.0, 4.0, 4.0], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]]
)
def test_little_to_choose_by(network: KernelNetwork, values: list[float]) -> None:
    y = torch.tensor(values, dtype=torch.float64)
    X = torch.rand(len(y), 2, generator=generator(1), dtype=torch.float64)
    fitted = fit_warped(network, X, y, maximise=True)
    assert fitted.posterior_mean(X).isfinite().all()
    if len(y) < LEAST_POINTS or len(set(values)) == 1:
        assert fitted.units.power == 1.0


def test_the_chosen_power_has_the_best_evidence(network: KernelNetwork) -> None:
    X, g = smooth(25)
    y = (1.2 * g).exp()
    chosen = fit_warped(network, X, y, maximise=True)
    evidences = {}
    for power in POWERS:
        units = Units.of(y, maximise=True).with_power(power, y)
        evidences[power] = Fitted(network, X, y, units=units).log_evidence
    best = max(v for v in evidences.values() if v is not None)
    assert chosen.log_evidence is not None
    # But for the prior of powers, and for what another fit is not worth.
    assert chosen.log_evidence > best - 2.5


def test_networks_without_evidence_take_results_as_they_are() -> None:
    config = TransformerConfig(width=16, layers=2, heads=2, hidden=32, bars=50, gain_bars=20)
    network = Transformer(config, PRIORS["robust"]).eval()
    X, g = smooth(12)
    fitted = fit_warped(network, X, g.exp(), maximise=True)
    assert fitted.units.power == 1.0


@pytest.mark.parametrize("n", [35, 36])
def test_fits_that_begin_with_an_earlier_one_find_the_same(network: KernelNetwork, n: int) -> None:
    for seed in range(3):
        X, g = smooth(n, seed)
        y = (1.2 * g).exp()
        earlier = fit_warped(network, X[:32], y[:32], maximise=True)
        fitted = fit_warped(network, X, y, maximise=True, earlier=earlier)
        fresh = fit_warped(network, X, y, maximise=True)
        assert fitted.log_evidence == pytest.approx(fresh.log_evidence, abs=1.5)
        Xq = torch.rand(64, 2, generator=generator(seed), dtype=torch.float64)
        ours, theirs = fitted.latent(Xq), fresh.latent(Xq)
        low, half, high = torch.tensor([0.16, 0.5, 0.84], dtype=torch.float64)
        away = (ours.icdf(half) - theirs.icdf(half)).abs()
        width = theirs.icdf(high) - theirs.icdf(low)
        assert float((away / width).median()) < 0.2


def test_what_was_foreseen_changes_no_hyperparameters(network: KernelNetwork) -> None:
    X, g = smooth(35)
    X = torch.cat([X, X[:1] + 0.001])
    y = torch.cat([g, g[:1]])
    earlier = fit_warped(network, X[:33], y[:33], maximise=True)

    def particles(y: torch.Tensor, X: torch.Tensor = X) -> Tensor:
        fitted = fit_warped(network, X, y, maximise=True, earlier=earlier)
        assert torch.equal(fitted.y, y)
        lengthscale: Tensor = fitted.state.conditioned.particles.hyper.lengthscale
        return lengthscale

    before = earlier.state.conditioned.particles.hyper.lengthscale
    assert torch.equal(particles(y), before)
    # A surprise, an infinite one for the earlier units, other results before, and many results.
    for value in (20.0, 1e90):
        news = y.clone()
        news[-1] = value
        assert not torch.equal(particles(news), before)
    assert not torch.equal(particles(y.flip(0), X.flip(0)), before)
    X_more, g_more = smooth(37)
    assert not torch.equal(particles(g_more, X_more), before)


def test_an_earlier_fit_that_was_wrong_is_left_behind(network: KernelNetwork) -> None:
    X, g = smooth(36)
    y = (2.0 * g).exp()
    # Of results that have nothing to do with those to come.
    misled = fit_warped(network, X[:32], y[:32].flip(0), maximise=True)
    fitted = fit_warped(network, X, y, maximise=True, earlier=misled)
    plain = Fitted(network, X, y, maximise=True)
    assert fitted.log_evidence is not None
    assert plain.log_evidence is not None
    assert fitted.log_evidence > plain.log_evidence


def test_fits_from_scratch_become_rarer() -> None:
    few = (1, 19, 20, 23, 28, 39, 47, 79, 95, 159)
    assert [milestones(n) for n in few] == [
        *([1], [19], [20], [20, 23], [28], [36, 39], [40, 44, 47], [72, 76, 79], [80, 88, 95]),
        [144, 152, 159],
    ]
    for n in range(1, 1000):
        counts = milestones(n)
        assert 0.78 * n <= counts[0] <= counts[-1] == n
        # A fit to some is what it is on the way to one to more.
        for i, count in enumerate(counts):
            assert milestones(count) == counts[: i + 1]
