import itertools
import math
from typing import Any

import pytest

from amortes.optimiser import Categorical, Float, Int, Ordinal
from amortes.optimiser.choices import Parameter
from amortes.optimiser.plots.axis import MOST_CHOICES, ParameterAxis
from amortes.optimiser.plots.picture import STYLES, Picture

PARAMETERS: list[Parameter] = [
    Float(1e-5, 1e-1, log=True),
    Float(1e-300, 1e300, log=True),
    Float(0.3, 0.7, log=True),
    Float(1, 30, log=True),
    Float(-5, 10),
    Float(0, 1e-300),
    Float(-1e307, 1e307),
    Float(1e15, 1e15 + 2),
    Float(0, 1, step=0.25),
    Int(1, 8),
    Int(1, 16, log=True),
    Int(1, 100_000, log=True),
    Int(-(2**47), 2**47),
    Categorical(["relu", "gelu"]),
    Categorical([f"resnet-{i}-with-a-long-name" for i in range(60)]),
    Ordinal(range(12)),
    Categorical([None, [1, 2], "$x$"]),
]


@pytest.mark.parametrize("parameter", PARAMETERS, ids=repr)
def test_ticks_are_in_order_and_do_not_touch(parameter: Parameter) -> None:
    axis = ParameterAxis.of("name", parameter)
    places, labels, minor = axis.ticks()
    assert places == sorted(places)
    assert len(set(labels)) == len(labels) >= 2
    assert all(0 <= place <= 1 for place in (*places, *minor))
    picture = Picture(2.75, 2.6 + axis.label_height(2.75), STYLES["light"])
    ax = picture.subplots()
    axis.apply(ax, width=2.75)
    picture.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.get_xticklabels()]
    if ax.get_xticklabels()[0].get_rotation() != 40:  # boxes of slanted texts overlap
        for one, other in itertools.pairwise(boxes):
            assert one.x1 <= other.x0 + 1
    assert all(box.y0 >= -1 for box in boxes)


def test_places_are_those_of_the_model() -> None:
    axis = ParameterAxis.of("lr", Float(1e-4, 1.0, log=True))
    assert [axis.place(10.0**e) for e in (-4, -2, 0)] == pytest.approx([0.0, 0.5, 1.0])
    assert dict(zip(axis.ticks()[1], axis.ticks()[0], strict=True))["$10^{-2}$"] == pytest.approx(
        0.5
    )
    assert math.isnan(axis.place_in({}))
    assert axis.continuous


@pytest.mark.parametrize(
    ("parameter", "labels"),
    [
        (Int(1, 8), "12345678"),
        (Int(1, 20, log=True), ["1", "2", "5", "10", "20"]),
        (Int(10, 1_000_000, log=True), ["$10^{2}$", "$10^{4}$", "$10^{6}$"]),
        (Float(0, 1e-300), ["0", "2e−301", "4e−301", "6e−301", "8e−301", "1e−300"]),
        (Float(1e15, 1e15 + 2), ["1000000000000000", "1000000000000002"]),
        (Float(-5, 10), ["−5", "0", "5", "10"]),
        (Float(0, 90_000), ["0", "20000", "40000", "60000", "80000"]),
        (Int(0, 10**6), ["0", "2e5", "4e5", "6e5", "8e5", "1e6"]),
        (Float(1e-5, 1e-4, log=True), ["1e−5", "2e−5", "5e−5", "0.0001"]),
        (Float(1e-5, 0.1, log=True), [f"$10^{{-{i}}}$" for i in range(5, 0, -1)]),
        (Categorical([True, None]), ["True", "None"]),
    ],
)
def test_labels(parameter: Parameter, labels: Any) -> None:
    assert ParameterAxis.of("x", parameter).ticks()[1] == list(labels)


def test_of_many_choices_some_are_shown() -> None:
    parameter = Categorical(list(range(100)))
    axis = ParameterAxis.of("c", parameter)
    assert len(axis.shown) <= MOST_CHOICES
    assert "of 100 choices" in axis.title
    some = ParameterAxis.of("c", parameter, [3, 5])
    assert (some.place(3), some.place(5)) == (0.25, 0.75)
    assert math.isnan(some.place(4))
    assert some.values() == [3, 5]
    assert not some.continuous


def test_values_to_predict() -> None:
    assert ParameterAxis.of("n", Int(1, 5)).values() == [1, 2, 3, 4, 5]
    values = ParameterAxis.of("n", Int(1, 10_000)).values()
    assert values[0] == 1
    assert values[-1] == 10_000
    assert len(values) == 80
