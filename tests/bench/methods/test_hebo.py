import numpy as np
import pytest
import torch

from amortes.bench.methods.registry import method_factory
from amortes.random import generator
from tests.bench.methods.conduct import Quadratic, check_conduct, run

pytest.importorskip("hebo", reason="installed by hand: its metadata ask for old versions")


@pytest.mark.slow
def test_conduct() -> None:
    # Few steps, as it is slow; its recommendations are those of random search.
    check_conduct(method_factory("hebo"), Quadratic(2), steps=3, near=1.0)


def test_pool() -> None:
    check_conduct(method_factory("hebo"), Quadratic(2, pool=40), steps=3)


@pytest.mark.slow
def test_learns_from_what_it_is_told() -> None:
    """After 30 random points, it looks near the optimum rather than anywhere."""
    problem = Quadratic(2)
    X = torch.rand(30, 2, generator=generator(0), dtype=torch.float64)
    y = problem.value(X)
    chosen = torch.stack([method_factory("hebo")(problem, seed).step(X, y).x for seed in range(3)])
    # Uniform points have a mean squared distance of 0.25.
    assert -problem.value(chosen).mean() < 0.1


def test_leaves_the_global_generator_of_numpy_alone() -> None:
    before = repr(np.random.get_state())  # noqa: NPY002
    run(method_factory("hebo"), Quadratic(2), steps=2)
    assert repr(np.random.get_state()) == before  # noqa: NPY002
