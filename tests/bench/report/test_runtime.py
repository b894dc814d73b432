import pandas as pd
import pytest

from amortes.bench.report.parts import Study
from amortes.bench.report.runtime import (
    draw_runtime,
    mean_times,
    runtime,
    seconds,
    speed_ups,
    timed_rows,
)
from tests.bench.report.fake import make, results, run

OURS = run("branin", "jes", 0, [0] * 3, fit=[1, 1, 4], search_seconds=[2, 2, 8])
THEIRS = run("branin", "fb-jes", 0, [0] * 2, fit=[10, 20], search_seconds=[20, 10])


def compared(*runs: pd.DataFrame) -> dict[tuple[str, str], tuple[float, int]]:
    """The factor and the last iteration by both methods."""
    found = speed_ups(timed_rows(results(*runs)))
    numbers = zip(found["factor"], found["iteration"], strict=True)
    return dict(zip(zip(found["ours"], found["theirs"], strict=True), numbers, strict=True))


def test_means_and_total() -> None:
    (row,) = mean_times(timed_rows(results(OURS))).to_dict("records")
    assert (row["fit"], row["search"], row["total"], row["iterations"]) == (2.0, 4.0, 6.0, 3)
    assert timed_rows(results(run("branin", "jes", 0, [0.0]))).empty


def test_the_same_iterations_are_compared() -> None:
    assert compared(OURS, THEIRS) == {("jes", "fb-jes"): (10.0, 2)}


def test_tasks_seeds_and_iterations_are_compared_one_by_one() -> None:
    def timed(task: int, method: str, seed: int, *fits: float) -> pd.DataFrame:
        return run(f"hpob-5527-{task}", method, seed, [0.0] * len(fits), fit=fits)

    found = speed_ups(
        timed_rows(
            results(
                timed(31, "jes", 0, 1, 3, 90),  # of this task, the rival has two iterations
                timed(31, "fb-jes", 0, 10, 30),
                timed(9914, "jes", 0, 2),
                timed(9914, "fb-jes", 0, 20, 900, 900),
                timed(9914, "jes", 1, 70),  # a seed of one method
                timed(9914, "fb-jes", 2, 700),
            )
        )
    )
    (row,) = found.to_dict("records")
    assert (row["total_ours"], row["total_theirs"], row["iteration"]) == (2.0, 20.0, 2)
    assert (row["panel"], row["factor"]) == ("hpob-5527", pytest.approx(10.0))


def test_rivals() -> None:
    logei = run("branin", "map-logei", 0, [0.0], fit=6)
    other = run("branin", "jes@x", 0, [0.0], fit=1)
    untimed = run("branin", "map-jes", 0, [0.0])
    later = run("branin", "fb-jes", 1, [0.0], fit=1)
    found = compared(OURS, later, logei, other, untimed)
    assert found == {("jes", "map-logei"): (2.0, 1)}


def test_speed_ups_are_a_table_of_problems_and_acquisitions() -> None:
    taken = {"jes": 1.0, "mes": 2.0, "fb-jes": 30.0, "map-logei": 4.0}
    runs = [run("branin", m, 0, [0.0], fit=s) for m, s in taken.items()]
    runs += [run("ackley5", m, 0, [0.0], fit=1) for m in ("mes", "map-logei")]
    table = make(runtime, Study(results(*runs))).tables[0]
    assert [*table.cells] == [
        *("problem", "MES against MAP GP LogEI", "JES against fully Bayesian GP"),
        "JES against MAP GP LogEI",
    ]
    assert table.cells.to_numpy().tolist() == [
        ["Branin, 2-D", "2.0×", "30×", "4.0×"],
        ["Ackley, 5-D", "1.0×", "", ""],
    ]


def test_times_may_come_from_a_sweep_of_their_own() -> None:
    fast, slow = (results(run("branin", "jes", 0, [0.0], fit=s)) for s in (1, 7))
    for study in (Study(slow, timed=fast), Study(fast)):
        (drawing,) = make(runtime, study).drawings
        assert drawing.data["total"].tolist() == [1.0]


def test_threads_that_differ_are_pointed_out() -> None:
    runs = [run("branin", m, 0, [0.0], fit=1, threads=n) for m, n in (("jes", "1"), ("mes", "4"))]
    assert (
        "not comparable between them: 1: jes; 4: mes"
        in make(runtime, Study(results(*runs))).notes[0]
    )
    assert make(runtime, Study(results(runs[0]))).notes == ["Threads per run: 1."]


def test_the_figure_has_geometric_means_in_order() -> None:
    rows = [["fb-jes", 20.0], ["jes", 0.1], ["jes", 0.4]]
    (ax,) = draw_runtime(pd.DataFrame(rows, columns=["method", "total"])).axes
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == ["amortes JES", "fully Bayesian GP JES"]
    assert [text.get_text() for text in ax.texts] == ["0.20 s", "20 s"]


def test_seconds_have_two_digits() -> None:
    assert [seconds(x) for x in (123.4, 1.26, 0.0123, 0.0)] == ["123", "1.3", "0.012", "0"]
