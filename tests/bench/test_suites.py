import pytest

from amortes.bench.problems.registry import PROBLEMS, family_of
from amortes.bench.report.names import panel_of
from amortes.bench.suites import METHODS, REAL, SUITES, plan
from amortes.errors import ConfigError


def test_all_problems_of_suites_exist() -> None:
    for suite in SUITES.values():
        assert {p for part in suite for p in part.problems} <= set(PROBLEMS)


def test_the_papers_suite() -> None:
    runs = plan("paper")
    assert len({run.problem for run in runs}) == 12 + 32
    for run in runs:
        assert run.iterations == (50 if run.problem.startswith("hpob") else 100)
    assert len(runs) == len(METHODS) * (12 * 10 + 32 * 5)
    assert len(set(runs)) == len(runs)


def test_the_suite_for_times_has_every_problem_of_the_papers_table() -> None:
    runs = plan("runtime")
    problems = {panel_of(run.problem) for run in runs}
    assert len(problems) == 15
    assert {"hpob-5971", "lcbench-car", "hartmann6"} <= problems
    for acquisition in ("pes", "mes", "jes"):
        assert {acquisition, f"fb-{acquisition}", "map-logei"} <= {run.method for run in runs}


def test_real_problems_of_eight_families() -> None:
    runs = plan("real", methods=["jes"], seeds=[0])
    assert len(REAL) == 8
    for family, names in REAL.items():
        assert {family_of(name) for name in names} == {family}
        assert set(names) <= {run.problem for run in runs}


def test_everything_advances_evenly_by_seed() -> None:
    runs = plan("synthetic", methods=["a", "b"], seeds=[0, 1, 2], iterations=7)
    assert [run.seed for run in runs] == [0] * 14 + [1] * 14 + [2] * 14
    assert [run.method for run in runs[:4]] == ["a", "b", "a", "b"]
    assert {run.iterations for run in runs} == {7}
    mixed = [run.seed for run in plan("paper")]
    assert mixed == sorted(mixed)


def test_problems_are_chosen_by_name_or_pattern() -> None:
    names = {run.problem for run in plan("hpob", problems=["hpob-5971-*", "hpob-7609-9967"])}
    assert len(names) == 7
    some = plan(None, problems=["branin*", "lcbench-car"], methods=["jes"], seeds=[4])
    assert [run.problem for run in some] == ["branin", "branin-noise0.5", "lcbench-car"]
    with pytest.raises(ConfigError, match="no 'lcbench-car' here"):
        plan("synthetic", problems=["lcbench-car"])


def test_unknown_suites_and_nothing_at_all_are_explained() -> None:
    with pytest.raises(ConfigError, match="must be one of synthetic, noise"):
        plan("all")
    with pytest.raises(ConfigError, match="Nothing to run"):
        plan(None)
