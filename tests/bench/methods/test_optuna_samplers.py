import pytest
import torch

from amortes.bench.methods.optuna_samplers import OptunaMethod
from amortes.bench.protocol import MethodFactory
from amortes.random import generator
from tests.bench.methods.conduct import Quadratic, check_conduct


def factory(sampler: str) -> MethodFactory:
    return lambda problem, seed: OptunaMethod(problem, seed, sampler)


@pytest.mark.parametrize("sampler", ["tpe", "gp"])
def test_conduct(sampler: str) -> None:
    check_conduct(factory(sampler), Quadratic(1, noise_sd=0.1))


@pytest.mark.parametrize("sampler", ["tpe", "gp"])
def test_pool(sampler: str) -> None:
    check_conduct(factory(sampler), Quadratic(2, pool=40), steps=3)


@pytest.mark.parametrize("sampler", ["tpe", "gp"])
def test_learns_from_what_it_is_told(sampler: str) -> None:
    """After 30 random points, it looks near the optimum rather than anywhere."""
    problem = Quadratic(2)
    X = torch.rand(30, 2, generator=generator(0), dtype=torch.float64)
    y = problem.value(X)
    chosen = torch.stack([factory(sampler)(problem, seed).step(X, y).x for seed in range(6)])
    # Uniform points have a mean squared distance of 0.25.
    assert -problem.value(chosen).mean() < 0.1
