import numpy as np
import pytest
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from amortes.optimiser.plots.values import ValueScale


def test_an_outlier_does_not_flatten_the_rest() -> None:
    values = [3.0, 1.0, 1e30, 2.0, 1e6, 5.0, 1.5, 2.5, 1.25]
    scale = ValueScale.of(values, maximise=False)
    assert (scale.low, scale.high, scale.log) == (1.0, 5.0, False)
    assert sorted(scale.beyond) == [1e6, 1e30]
    assert scale.note == "2 results above the axis, up to 1e+30"
    assert scale.shown(values).tolist() == [value < 100 for value in values]
    other = ValueScale.of([-value for value in values], maximise=True)
    assert (other.low, other.high) == (-5.0, -1.0)
    assert other.note == "2 results below the axis, down to -1e+30"
    # An outlier on the good side is what is looked for.
    assert ValueScale.of([-value for value in values], maximise=False).low == -1e30


def test_logarithms_where_values_span_decades() -> None:
    values = [1e-4, 3e-3, 2e-1, 5.0, 40.0]
    assert ValueScale.of(values, maximise=False).log
    assert ValueScale.of(values, maximise=False).beyond == ()
    assert not ValueScale.of([-v for v in values], maximise=False).log
    assert not ValueScale.of([1.0, 50.0, 20.0], maximise=False).log
    assert not ValueScale.of([0.0, *values], maximise=False).log
    far = ValueScale.of([*values, 1e30], maximise=False)
    assert far.log
    assert far.beyond == (1e30,)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [0.0],
        [1.0] * 5,
        [1e99, 1e99, -1e99],
        [1.0, 1.0 + 1e-15],
        [1e-300, 2e-300],
        [1e-99, 1e99],
        [5.0, 5.0, 5.0, 5.0, 1e30],
    ],
)
def test_any_values_have_an_axis(values: list[float]) -> None:
    scale = ValueScale.of(values, maximise=False)
    low, high = scale.limits
    assert np.isfinite([low, high]).all()
    assert low < high
    figure = Figure()
    ax = figure.subplots()
    scale.apply(ax)
    scale.norm()
    figure.draw_without_rendering()


def test_small_differences_fill_the_axis_and_constants_are_in_its_middle() -> None:
    scale = ValueScale.of([1000.0, 1000.0 + 1e-7], maximise=False)
    assert scale.limits == pytest.approx((1000.0 - 6e-9, 1000.0 + 1.06e-7), abs=1e-12)
    for value in (7.0, -7.0, 0.0):
        low, high = ValueScale.of([value] * 3, maximise=False).limits
        assert (low + high) / 2 == pytest.approx(value)
        assert 2.0 < high - low < 6.0


def test_room_for_predictions_but_not_for_any() -> None:
    scale = ValueScale.of([1.0, 2.0], maximise=False).including([0.5, 2.2], [1e20, np.nan])
    assert (scale.low, scale.high) == (0.5, 2.2)
    logarithmic = ValueScale.of([1e-3, 1.0], maximise=False)
    assert logarithmic.including([3e-4, -0.5, 1e-9]).low == 3e-4
    assert logarithmic.including([3e-4, -0.5]).log
    assert isinstance(logarithmic.norm(), LogNorm)


def test_values_cut_off_at_the_ends_of_the_axis() -> None:
    scale = ValueScale.of([1.0, 3.0], maximise=False)
    cut, own = scale.within(np.array([[2.0, 1e30], [1.5, 2.5]]))
    assert cut.tolist() == [[2.0, scale.limits[1]], [1.5, 2.5]]
    assert (own.low, own.high) == (1.5, scale.limits[1])


def test_marks_at_the_edge() -> None:
    ax = Figure().subplots()
    drawn = ValueScale.of([1, 2, 3, 4, 1e30], maximise=False).mark_beyond(ax, [4.0], label="x")
    assert drawn.get_offsets().tolist()[0][1] > 0.95
