import math

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.acquisition.units import BEYOND, Units, check_values, without_spread
from amortes.errors import DataError
from amortes.nets.distributions import GaussianMixture


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


POWERS = [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("power", POWERS)
def test_powers_there_and_back(power: float, maximise: bool) -> None:
    y = torch.from_numpy(np.random.default_rng(0).lognormal(1.0, 1.0, 40))
    units = Units.of(y, maximise=maximise, power=power)
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
@pytest.mark.parametrize("power", POWERS)
def test_distributions_of_powers_come_back(power: float, maximise: bool) -> None:
    y = torch.from_numpy(np.random.default_rng(0).lognormal(1.0, 0.5, 40))
    units = Units.of(y, maximise=maximise, power=power)
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
    units = Units.of(y, maximise=True, power=-1.0)
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
    plain, powers = Units.of(y, maximise=True), (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0)
    units, z, slope = plain.with_powers(powers, y)
    assert plain.power in [each.power for each in units]
    for i, each in enumerate(units):
        alone = plain.with_power(each.power, y)
        assert (each.mean, each.sd) == pytest.approx((alone.mean, alone.sd), rel=1e-12)
        torch.testing.assert_close(z[i], alone.to_network(y), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(slope[i], alone.log_slope(y), rtol=1e-9, atol=1e-9)
    left_out = [plain.with_power(p, y) for p in powers if p not in [each.power for each in units]]
    assert not any(bool(each.to_network(y).isfinite().all()) for each in left_out)
