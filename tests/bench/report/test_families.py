import math

import pandas as pd
import pytest

from amortes.bench.report.families import BUDGETS, families, regrets
from amortes.bench.report.load import Results
from amortes.bench.report.parts import Study
from tests.bench.report.fake import make, results, run


def flat(
    problem: str,
    method: str,
    seed: int,
    value: float,
    *,
    noise_sd: float = 0.0,
    start: float = -1.0,
) -> pd.DataFrame:
    """A run that has `start` first and `value` from the second observation on; the best is 0."""
    values = [start, *[value] * 40]
    regret = [-v for v in values]
    return run(problem, method, seed, values, regret=regret, noise_sd=noise_sd)


LEVY, CAR, WINE = "classic-levy5", "lcbench-car", "sklearn-mlp-wine"


def example() -> Study:
    return Study(
        results(
            *[
                *(flat(LEVY, "jes", s, -0.01) for s in (0, 1)),
                *(flat(LEVY, "botorch", s, -0.1) for s in (0, 1)),
                *(flat(LEVY, "random", s, -0.5) for s in (0, 1)),
                flat("classic-levy8", "jes", 0, -0.001),
                flat("classic-levy8", "botorch", 0, -0.001),
                flat("classic-levy8", "random", 0, -0.1),
                flat(CAR, "jes", 0, -0.1),
                flat(CAR, "botorch", 0, 0.0),
                flat(CAR, "random", 0, -0.1),
                flat(CAR, "jes", 1, -0.1),  # the others have no such seed
            ]
        )
    )


def test_ranks_and_floored_log_regret_of_common_cells() -> None:
    table = regrets(example().results)
    assert set(table["n"]) == {n for n in BUDGETS if n <= 41}
    at = table[table["n"] == 20].set_index(["problem", "seed", "method"])
    assert len(at) == 4 * 3
    assert at.loc[(LEVY, 0, "jes"), "log_regret"] == pytest.approx(-2.0)
    # A regret of zero counts as a ten-thousandth of the first.
    assert at.loc[(CAR, 0, "botorch"), "log_regret"] == pytest.approx(-4.0)
    ranks = {m: at.loc[(CAR, 0, m), "rank"] for m in ("jes", "botorch", "random")}
    assert ranks == {"jes": 2.5, "botorch": 1.0, "random": 2.5}
    assert at.loc[(LEVY, 0, "random"), "family"] == "classic"


def test_tables_by_family() -> None:
    section = make(families, example())
    ranks, differences, wins = section.tables
    assert [*ranks.cells] == [
        "method",
        "classic (2 problems; n = 20 / 40)",
        "lcbench (1 problem; n = 20 / 40)",
        "all (3 problems; n = 20 / 40)",
    ]
    by_method = {row[0]: [*row[1:]] for row in ranks.cells.to_numpy().tolist()}
    # levy5: 1, 2, 3; levy8: 1.5, 1.5, 3; car: 2.5, 1, 2.5; families count the same.
    assert by_method["BoTorch"] == ["1.8 / 1.8", "1.0 / 1.0", "1.4 / 1.4"]
    assert by_method["amortes JES"] == ["1.2 / 1.2", "2.5 / 2.5", "1.9 / 1.9"]
    assert ranks.cells["method"].tolist() == ["BoTorch", "amortes JES", "random search"]
    assert [*differences.cells] == ["family", "n", "BoTorch", "random search"]
    cells = {(row[0], row[1]): row[2:] for row in differences.cells.to_numpy().tolist()}
    # levy5: 1; levy8: 0; mean and standard error over both.
    assert cells["classic", "20"][0] == "0.50 ± 0.50"
    assert cells["lcbench", "20"] == ["-3.00", "0.00"]
    assert cells["all", "40"][0] == "-1.25 ± 0.25"
    cells = {(row[0], row[1]): row[2:] for row in wins.cells.to_numpy().tolist()}
    assert cells["classic", "20"] == ["75%", "100%"]
    assert cells["lcbench", "20"] == ["0%", "50%"]


def test_simple_regret_counts_without_noise_and_inference_regret_with_it() -> None:
    def with_simple(noise_sd: float) -> Results:
        runs = [flat(LEVY, m, 0, v, noise_sd=noise_sd) for m, v in (("jes", -0.1), ("hebo", -0.2))]
        return results(*(one.assign(simple_value=[-1.0, *[-0.01] * 40]) for one in runs))

    plain = regrets(with_simple(0.0)).query("n == 20").set_index("method")["log_regret"]
    assert plain.tolist() == pytest.approx([-2.0, -2.0])
    noisy = regrets(with_simple(0.5)).query("n == 20").set_index("method")["log_regret"]
    assert noisy["jes"] == pytest.approx(-1.0)
    assert noisy["hebo"] == pytest.approx(math.log10(0.2))


def test_an_unknown_best_value_is_the_best_in_the_results() -> None:
    runs = [
        run(WINE, method, 0, [-2.0, *[value] * 30])
        for method, value in (("jes", -1.5), ("random", -1.9))
    ]
    table = regrets(results(*runs)).query("n == 20").set_index("method")["log_regret"]
    # The first points leave 0.5, of which a ten-thousandth is the floor.
    assert table["jes"] == pytest.approx(math.log10(0.5e-4))
    assert table["random"] == pytest.approx(math.log10(0.4))


def test_short_runs_have_nothing() -> None:
    runs = [run(LEVY, method, 0, [-1.0, -0.5]) for method in ("jes", "random")]
    section = make(families, Study(results(*runs)))
    assert not section.tables
    assert "20 observations" in section.notes[0]


def test_the_reference_is_the_default_policy() -> None:
    runs = [run(LEVY, method, 0, [-2.0, *[-1.0] * 30]) for method in ("jes", "auto", "random")]
    _, differences, _ = make(families, Study(results(*runs))).tables
    assert differences.title.startswith("log10 regret minus that of amortes auto")
