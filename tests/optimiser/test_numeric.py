import math
import warnings

import pytest
import torch
from optuna.distributions import FloatDistribution, IntDistribution
from scipy import stats

from amortes.errors import DataError
from amortes.optimiser import Float, Int
from amortes.optimiser.numeric import MAX_INTEGER, Numeric
from amortes.random import generator


@pytest.mark.parametrize(
    ("parameter", "value", "u"),
    [
        (Float(-5.0, 10.0), -5.0, 0.0),
        (Float(-5.0, 10.0), 2.5, 0.5),
        (Float(1e-4, 1e4, log=True), 1.0, 0.5),
        (Float(1e-4, 1e4, log=True), 1e4, 1.0),
        (Int(1, 4), 1, 0.125),
        (Int(1, 4), 4, 0.875),
        (Int(1, 9, log=True), 3, math.log(6) / math.log(19)),
        (Float(0.0, 1.0, step=0.25), 0.25, 0.3),
        (Int(0, 10, step=4), 8, 5 / 6),
    ],
)
def test_values_lie_where_the_docstring_says(parameter: Numeric, value: float, u: float) -> None:
    assert parameter.encode(value) == pytest.approx([u], abs=1e-15)
    assert parameter.decode([u]) == pytest.approx(value)


@pytest.mark.parametrize(
    "parameter", [Int(-3, 4), Int(0, 1), Int(1, 1000, log=True), Int(-MAX_INTEGER, MAX_INTEGER)]
)
def test_every_integer_comes_back(parameter: Int) -> None:
    span = range(parameter.low, parameter.high + 1)
    some = list(span) if len(span) < 5000 else [*span[:50], *span[-50:], 0, 12345678901]
    for value in some:
        assert parameter.decode(parameter.encode(value)) == value


@pytest.mark.parametrize(
    "parameter",
    [
        Float(0.1, 7),
        Int(1, 12),
        Int(2, 300, log=True),
        Float(-0.3, 1.0, step=0.1),
        Int(-7, 40, step=5),
    ],
)
def test_projecting_is_encoding_what_is_decoded(parameter: Numeric) -> None:
    U = torch.linspace(-0.1, 1.1, 997, dtype=torch.float64)[:, None]
    expected = [parameter.encode(parameter.decode(u)) for u in U.tolist()]
    torch.testing.assert_close(parameter.project(U), torch.tensor(expected, dtype=torch.float64))


def test_uniform_points_are_uniform_integers() -> None:
    parameter = Int(3, 9)
    draws = torch.rand(7000, generator=generator(0), dtype=torch.float64).tolist()
    values = [parameter.decode([u]) for u in draws]
    counts = [values.count(v) for v in range(3, 10)]
    assert sum(counts) == 7000
    assert stats.chisquare(counts).pvalue > 0.01


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [(0.0, 1.0, 0.1), (0.1, 0.75, 0.2), (-1.0, 1.0, 0.3), (0.0, 5.0, 5.0), (1e-5, 1.0, 1e-5)],
)
def test_float_steps_are_those_of_optuna(low: float, high: float, step: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a step does not divide the range
        theirs = FloatDistribution(low, high, step=step)
    parameter = Float(low, high, step=step)
    count = round((theirs.high - theirs.low) / step) + 1
    assert parameter.cardinality == count
    values = parameter.values()
    assert values == pytest.approx([low + k * step for k in range(count)], rel=1e-12)
    assert values[-1] == theirs.high <= high
    assert all(theirs._contains(value) for value in values)
    assert [parameter.decode(parameter.encode(value)) for value in values] == values


@pytest.mark.parametrize(("low", "high", "step"), [(0, 10, 2), (1, 10, 4), (-3, 8, 11), (0, 1, 1)])
def test_int_steps_are_those_of_optuna(low: int, high: int, step: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = IntDistribution(low, high, step=step)
    values = Int(low, high, step=step).values()
    assert values == list(range(theirs.low, theirs.high + 1, step))


def test_steps_are_decimal_numbers() -> None:
    assert 0.1 + 2 * 0.1 != 0.3
    assert Float(0.1, 0.5, step=0.1).values() == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert Float(0.1, 0.5, step=0.1).check(0.1 + 2 * 0.1) == 0.3


def test_numbers_between_steps_are_refused() -> None:
    with pytest.raises(DataError, match=r"0.25 is not one of the steps 0.1, 0.2, \.\.\., 0.5"):
        Float(0.1, 0.5, step=0.1).check(0.25)
    with pytest.raises(DataError, match=r"4 is not one of the steps 1, 3, \.\.\., 7"):
        Int(1, 8, step=2).check(4)
    with pytest.raises(DataError, match="8 is not one of the steps"):  # low + k * step <= high
        Int(1, 8, step=2).check(8)
    with pytest.raises(DataError, match=r"1\.0 is not one of the steps"):
        Float(0, 1, step=0.4).check(1.0)


def test_natural_numbers_agree_with_decoding() -> None:
    u = torch.linspace(0, 1, 11, dtype=torch.float64)
    for parameter in (Float(-2.0, 3.0), Float(0.01, 3.0, log=True)):
        expected = [parameter.decode([v]) for v in u.tolist()]
        torch.testing.assert_close(parameter.natural(u).tolist(), expected)


def test_decoding_never_leaves_the_bounds() -> None:
    parameter = Float(1e-5, 0.1, log=True)
    assert parameter.decode([1.0]) == 0.1
    assert parameter.decode([0.0]) == 1e-5
    assert parameter.decode([-3.0]) == 1e-5


def test_rounding_does_not_make_a_number_invalid() -> None:
    assert 0.8 - 0.1 > 0.7
    assert Float(0.1, 0.7).check(0.8 - 0.1) == 0.7
    with pytest.raises(DataError, match="outside"):
        Float(0.1, 0.7).check(0.7 + 1e-9)


def test_values_of_other_types() -> None:
    assert Int(1, 8).check(torch.tensor(3)) == 3
    assert type(Int(1, 8).check(3.0)) is int
    assert type(Float(0, 8).check(3)) is float
    with pytest.raises(DataError, match="outside"):
        Float(0, 8).check(10**400)


def test_a_continuum_has_no_list_of_values() -> None:
    with pytest.raises(TypeError, match="no finite list"):
        Float(0, 1).values()
