from pathlib import Path

import pytest

from amortes.bench.problems.registry import PROBLEMS, make_problem
from amortes.errors import ConfigError


def test_problems_by_name(folder: Path) -> None:
    assert len(PROBLEMS) == len(set(PROBLEMS)) == 7 + 7 + 5 + 32 + 3
    for name in (
        "branin-noise0.5",
        "ackley5-near",
        "lcbench-segment",
        "hpob-5971-43",
        "sklearn-mlp-wine",
    ):
        problem = make_problem(name)
        assert problem.name == name
        assert problem.d >= 1


def test_unknown_names_are_explained() -> None:
    with pytest.raises(ConfigError, match=r"no problem 'rosenbrock'; there are branin"):
        make_problem("rosenbrock")
