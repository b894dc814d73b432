from pathlib import Path

import pytest

from amortes.bench.problems.registry import KINDS, PROBLEMS, family_of, make_problem
from amortes.bench.report.names import GROUPS
from amortes.errors import ConfigError


def test_problems_by_name(folder: Path) -> None:
    assert len(PROBLEMS) == sum(len(kind.names) for kind in KINDS)
    families = [family_of(name) for name in PROBLEMS]
    assert families.count("synthetic") == 7 + 7
    assert families.count("hpob") == 32
    for name in (
        "branin-noise0.5",
        "ackley5-near",
        "lcbench-segment",
        "hpob-5971-43",
        "sklearn-mlp-wine",
        "classic-levy5",
        "classic-levy5-noisy",
        "design-spring",
        "hpobench-kc1",
        "chem-penicillin",
    ):
        problem = make_problem(name)
        assert problem.name == name
        assert problem.d >= 1


def test_kinds_say_how_their_problems_are_run_and_reported() -> None:
    for kind in KINDS:
        assert set(kind.real) <= set(kind.names)
        assert kind.group in GROUPS
        assert set(kind.labels) <= {kind.panel(name) for name in kind.names}


@pytest.mark.parametrize("name", ["rosenbrock", "branin-noise", "lcbench-adult", "chem-gold"])
def test_unknown_names_are_explained(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"no problem '{name}'; there are branin"):
        make_problem(name)


def test_names_that_are_not_listed_are_functions_of_a_prior() -> None:
    assert family_of("robust-0123abcd-d2-noise0.02-f0") == "prior"
