"""A small problem, and what every method must do on it."""

import torch
from torch import Tensor

from amortes.bench.protocol import MethodFactory, Problem, Step
from amortes.random import generator

OPTIMUM = 0.3


class Quadratic(Problem):
    """-|x - 0.3|^2, perhaps on a pool of random points; methods are told of a noise."""

    name, best = "quadratic", 0.0

    def __init__(self, d: int, pool: int | None = None, noise_sd: float = 0.0) -> None:
        self.d, self.noise_sd = d, noise_sd
        if pool is not None:
            self.pool = torch.rand(pool, d, generator=generator(pool, d), dtype=torch.float64)

    def value(self, X: Tensor) -> Tensor:
        return -(X - OPTIMUM).square().sum(-1)


def run(factory: MethodFactory, problem: Problem, steps: int = 8, seed: int = 0) -> list[Step]:
    """Let a method choose `steps` points after the first d."""
    d = problem.d
    X = torch.rand(d, d, generator=generator(seed), dtype=torch.float64)
    if problem.pool is not None:
        X = problem.pool[:d]
    method, taken = factory(problem, seed), []
    for _ in range(steps):
        taken.append(method.step(X, problem.value(X)))
        X = torch.cat([X, taken[-1].x[None]])
    return taken


def check_conduct(
    factory: MethodFactory, problem: Problem, steps: int = 8, near: float = 0.05
) -> None:
    """Points stay inside, seeds decide, time is told, and the last recommendation is good."""
    state = torch.random.get_rng_state()
    threads = torch.get_num_threads()
    taken = run(factory, problem, steps)
    for step in taken:
        for x in (step.x, step.recommended):
            assert x.shape == (problem.d,)
            assert x.dtype == torch.float64
            assert not x.requires_grad
            assert bool(((x >= 0) & (x <= 1)).all())
        assert min(step.fit_seconds, step.search_seconds, step.recommend_seconds) >= 0
    chosen = torch.stack([step.x for step in taken])
    if problem.pool is not None:
        seen = torch.cat([problem.pool[: problem.d], chosen])
        same = (seen[:, None] == problem.pool).all(-1)
        assert bool((same.sum(1) == 1).all())  # points of the pool,
        assert bool((same.sum(0) <= 1).all())  # and none of them twice
    else:
        assert (taken[-1].recommended - OPTIMUM).abs().max() < near
    # The same again, up to where seeds could have made a difference.
    again = run(factory, problem, 3)
    for step, other in zip(taken, again, strict=False):
        assert torch.equal(step.x, other.x)
        assert torch.equal(step.recommended, other.recommended)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
