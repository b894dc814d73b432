import math

import numpy as np
import pandas as pd

from amortes.bench.report.comparison_figures import draw_matrix, draw_ranks, draw_runtime, draw_wins


def test_wins() -> None:
    columns = ["group", "ours", "theirs", "rate", "low", "high"]
    rows = [["a", "jes", "fb-jes", 0.6, 0.31, 0.83], ["b", "logei", "fb-ei", 0.5, 0.1, 0.9]]
    figure = draw_wins(pd.DataFrame(rows, columns=columns), {("a", "jes"): 0.4, ("a", "ei"): 0.3})
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["JES against fully Bayesian GP", "LogEI against fully Bayesian GP EI"]
    points = [float(np.asarray(line.get_xdata())[0]) for line in figure.axes[0].lines]
    assert points == [0.5, 0.31, 0.6, 0.4, 0.3]  # even, interval, rate, two as published
    assert len(figure.axes[1].lines) == 1 + 2


def test_the_matrix_has_a_number_in_each_known_cell() -> None:
    rates = pd.DataFrame(
        [["jes", "mes", 0.75], ["mes", "jes", 0.25], ["mes", "random", 1.0]],
        columns=["ours", "theirs", "rate"],
    )
    (ax,) = draw_matrix(["jes", "mes", "random"], rates).axes
    numbers = {(t.get_position()[1], t.get_position()[0]): t.get_text() for t in ax.texts}
    assert numbers == {(0.5, 1.5): "75", (1.5, 0.5): "25", (1.5, 2.5): "100"}


def test_ranks() -> None:
    columns = ["group", "method", "rank", "standard_error", "methods", "tasks"]
    rows = [["LCBench", "jes", 1.2, 0.1, 2, 2], ["LCBench", "random", 1.8, math.nan, 2, 2]]
    (ax,) = draw_ranks(pd.DataFrame(rows, columns=columns)).axes
    assert ax.get_title() == "LCBench\n2 methods, 2 tasks"
    assert [text.get_text() for text in ax.get_yticklabels()] == ["amortes JES", "random search"]


def test_runtimes_are_sorted() -> None:
    rows = [["fb-jes", 20.0], ["jes", 0.1], ["jes", 0.4]]
    (ax,) = draw_runtime(pd.DataFrame(rows, columns=["method", "total"])).axes
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == ["amortes JES", "fully Bayesian GP JES"]
    assert [text.get_text() for text in ax.texts] == ["0.20 s", "20 s"]  # geometric means
