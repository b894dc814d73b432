import math

import pytest
import torch
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


@pytest.mark.parametrize("parameter", [Float(0.1, 7), Int(1, 12), Int(2, 300, log=True)])
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
