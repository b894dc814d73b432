import pytest

from amortes.bench.methods.fully_bayesian import FullyBayesian
from amortes.bench.protocol import MethodFactory
from tests.bench.methods.conduct import Quadratic, check_conduct


def factory(acquisition: str) -> MethodFactory:
    return lambda problem, seed: FullyBayesian(problem, seed, acquisition)


def test_conduct_logei() -> None:
    """Compiles NUTS once, for all numbers of points from 1 to 6."""
    check_conduct(factory("logei"), Quadratic(1), steps=5)


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["ei", "logei", "mes", "jes", "pes"])
def test_conduct(acquisition: str) -> None:
    check_conduct(factory(acquisition), Quadratic(2), near=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["logei", "mes", "jes", "pes"])
def test_pool(acquisition: str) -> None:
    check_conduct(factory(acquisition), Quadratic(2, pool=40), steps=3)
