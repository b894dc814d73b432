import math

import numpy as np
import pytest

from amortes.bench.report.comparison_figures import (
    draw_matrix,
    draw_ranks,
    draw_runtime,
    draw_wins,
)
from amortes.bench.report.ranks import Field, Ranks
from amortes.bench.report.runtime import Timing
from amortes.bench.report.wins import Wins


def test_wins() -> None:
    pairs = {("jes", "fb-jes"): Wins(points=6, n=10), ("logei", "fb-ei"): Wins(points=0, n=0)}
    figure = draw_wins({"synthetic": pairs}, {"synthetic": {"jes": 0.4, "ei": 0.3}})
    (ax,) = figure.axes
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == ["JES against fully Bayesian GP", "LogEI against fully Bayesian GP EI"]
    points = [float(np.asarray(line.get_xdata())[0]) for line in ax.lines]
    assert points[0] == 0.5  # even
    assert points[1] == pytest.approx(Wins(points=6, n=10).interval[0])
    assert points[2:] == [0.6, 0.4, 0.3]  # the last two as published


def test_the_matrix_has_a_number_in_each_known_cell() -> None:
    rate = np.array([[math.nan, 0.75, math.nan], [0.25, math.nan, 1.0], [math.nan, 0.0, math.nan]])
    (ax,) = draw_matrix(["jes", "mes", "random"], rate).axes
    numbers = {(t.get_position()[1], t.get_position()[0]): t.get_text() for t in ax.texts}
    assert numbers == {(0.5, 1.5): "75", (1.5, 0.5): "25", (1.5, 2.5): "100", (2.5, 1.5): "0"}


def test_ranks() -> None:
    field = Field(methods=["jes", "random"], cells=[("a", 0), ("b", 0)], left_out=[])
    all_of_them = Ranks(
        field=field, mean={"jes": 1.2, "random": 1.8}, error={"jes": 0.1, "random": math.nan}
    )
    figure = draw_ranks({"LCBench": all_of_them})
    (ax,) = figure.axes
    assert ax.get_title() == "LCBench\n2 methods, 2 tasks"
    assert [text.get_text() for text in ax.get_yticklabels()] == ["amortes JES", "random search"]


def test_runtimes_are_sorted() -> None:
    def timing(total: float) -> Timing:
        return Timing(fit=total / 2, search=total / 2, recommend=1.0, iterations=1)

    times = {"fb-jes": {"branin": timing(20.0)}, "jes": {"a": timing(0.1), "b": timing(0.4)}}
    (ax,) = draw_runtime(times).axes
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == ["amortes JES", "fully Bayesian GP JES"]
    assert [text.get_text() for text in ax.texts] == ["0.20 s", "20 s"]  # geometric means
