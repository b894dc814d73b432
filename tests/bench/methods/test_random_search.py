import torch

from amortes.bench.methods.random_search import RandomSearch
from tests.bench.methods.conduct import Quadratic, check_conduct, run


def test_conduct() -> None:
    check_conduct(RandomSearch, Quadratic(1, noise_sd=0.1))


def test_pool() -> None:
    check_conduct(RandomSearch, Quadratic(2, pool=40), steps=4)


def test_points_are_uniform_and_depend_on_the_seed() -> None:
    problem = Quadratic(1)
    draws = torch.stack(
        [
            RandomSearch(problem, seed).step(torch.zeros(n, 1).double(), torch.zeros(n)).x
            for seed in range(20)
            for n in range(1, 51)
        ]
    )
    assert len(set(draws.flatten().tolist())) == 1000
    # Kolmogorov-Smirnov at 1e-6.
    steps = torch.arange(1, 1001) / 1000
    assert (draws.flatten().sort().values - steps).abs().max() < 0.085


def test_recommends_by_a_model_rather_than_the_luckiest_observation() -> None:
    problem = Quadratic(1, noise_sd=0.1)
    x = torch.linspace(0.0, 1.0, 21, dtype=torch.float64)[:, None]
    y = problem.value(x)
    y[18] += 0.6  # far from the optimum, and now the highest
    recommended = RandomSearch(problem, 0).step(x, y).recommended
    assert y.argmax() == 18
    assert (recommended - 0.3).abs().max() < 0.15
    exact = RandomSearch(Quadratic(1), 0).step(x, y).recommended
    assert torch.equal(exact, x[18])


def test_other_seeds_and_problems_give_other_points() -> None:
    one, two = (run(RandomSearch, Quadratic(2), 1, seed)[0].x for seed in (0, 1))
    assert not torch.equal(one, two)
    other = Quadratic(2)
    other.name = "another"
    assert not torch.equal(run(RandomSearch, other, 1)[0].x, one)
