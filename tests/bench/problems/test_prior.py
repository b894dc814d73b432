import dataclasses

import torch

from amortes.bench.problems.prior import PriorFunction, label
from amortes.prior.gp import Marginal, named_prior

PRIOR = named_prior("robust")


def test_the_best_is_reached_and_not_exceeded() -> None:
    for d in (2, 4):
        problem = PriorFunction(PRIOR, d=d, index=0, noise_sd=0.1)
        assert (problem.d, problem.noise_sd) == (d, 0.1)
        X = torch.rand(20000, d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        X = torch.cat([X, (2 * X[:10000] - 0.5).clamp(0, 1)])
        values = problem.value(X)
        x = X[values.topk(4).indices].clone().requires_grad_(True)
        for _ in range(300):
            (gradient,) = torch.autograd.grad(problem.value(x).sum(), x)
            x = (x + 0.002 * gradient).clamp(0, 1).detach().requires_grad_(True)
        found = float(problem.value(x.detach()).max())
        assert problem.best - 0.02 < found < problem.best + 1e-9


def test_a_function_is_the_same_under_any_noise_and_different_for_each_index() -> None:
    X = torch.rand(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    first = PriorFunction(PRIOR, d=2, index=0, noise_sd=0.02)
    noisy = PriorFunction(PRIOR, d=2, index=0, noise_sd=0.3)
    other = PriorFunction(PRIOR, d=2, index=1, noise_sd=0.02)
    assert torch.equal(first.value(X), noisy.value(X))
    assert not torch.allclose(first.value(X), other.value(X))
    assert len({first.name, noisy.name, other.name}) == 3
    assert first.name == f"{label(PRIOR)}-d2-noise0.02-f0"


def test_labels_tell_priors_apart() -> None:
    changed = dataclasses.replace(PRIOR, mean=Marginal.fixed(0.0))
    renamed = dataclasses.replace(PRIOR, name="mine")
    assert label(changed) != label(PRIOR)
    assert label(renamed).removeprefix("mine") == label(PRIOR).removeprefix("robust")
