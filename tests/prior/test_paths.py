import dataclasses
import math

import pytest
import torch

from amortes.prior.gp import PRIORS, Hyperparameters, Kernel
from amortes.prior.kernels import covariance
from amortes.prior.paths import CHUNK, Paths
from amortes.prior.warp import warp
from amortes.random import derive_seeds, generator


def some_paths(
    d: int, count: int, dtype: torch.dtype = torch.float64, *, warped: bool = False
) -> Paths:
    seeds = derive_seeds(11, d, count=count)
    prior = PRIORS["real"].models[1][1] if warped else PRIORS["robust"]
    return Paths.sample(prior.kernel, prior.sample(seeds, d), seeds, dtype=dtype)


@pytest.mark.parametrize(
    ("kernel", "warped"),
    [("se", False), ("matern52", False), ("mixed", False), ("mixed", True)],
)
def test_covariance_of_many_paths_is_the_kernel(kernel: Kernel, warped: bool) -> None:
    count = 20_000
    one = torch.ones(count, dtype=torch.float64)
    hyper = Hyperparameters(
        torch.tensor([0.3, 0.8], dtype=torch.float64).expand(count, 2),
        2.0 * one,
        0.1 * one,
        0.7 * one,
    )
    if kernel == "mixed":
        hyper = dataclasses.replace(hyper, roughness=0.3 * one)
    if warped:
        parameters = torch.tensor([[0.4, -0.3], [1.0, -0.7]], dtype=torch.float64)
        hyper = dataclasses.replace(hyper, warp=parameters.expand(count, 2, 2))
    paths = Paths.sample(kernel, hyper, derive_seeds(1, count=count), num_features=64)
    X = torch.rand(6, 2, generator=generator(2))
    values = paths(X.expand(count, -1, -1)).double()
    centred = values - 0.7
    empirical = centred.T @ centred / count
    expected = covariance(kernel, hyper[0], X.double(), X.double())
    # Var of a product of two Gaussians with variance 2 and covariance c is 4 + c^2 <= 8; five
    # standard errors for the largest of 21 entries, and a little for the features' kurtosis.
    assert (empirical - expected).abs().max() < 5 * 1.1 * math.sqrt(8 / count)
    assert values.mean(0).sub(0.7).abs().max() < 5 * math.sqrt(2 / count)


@pytest.mark.parametrize("d", [1, 3, 16])
def test_derivatives_agree_with_autograd(d: int) -> None:
    paths = some_paths(d, 2)
    X = torch.rand(2, 4, d, generator=generator(d), dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(paths(X).sum(), X, create_graph=True)
    waves, slopes = paths.waves(X.detach())
    assert torch.allclose(slopes @ paths.frequencies, g, atol=1e-9)
    rows = [torch.autograd.grad(g[..., k].sum(), X, retain_graph=True)[0] for k in range(d)]
    hessian = paths.symmetric(-(waves @ paths.products()))
    assert torch.allclose(hessian, torch.stack(rows, -2), atol=1e-8)


def test_a_path_depends_on_its_own_seed_only_and_is_one_function_in_both_dtypes() -> None:
    seeds = derive_seeds(5, count=4)
    hyper = PRIORS["paper"].sample(seeds, 2)
    X = torch.rand(4, 3, 2, generator=generator(6))
    whole = Paths.sample("matern52", hyper, seeds)(X)
    alone = Paths.sample("matern52", hyper[2:3], seeds[2:3])(X[2:3])
    assert torch.allclose(whole[2:3], alone, atol=1e-6)
    double = Paths.sample("matern52", hyper, seeds, dtype=torch.float64)(X.double())
    assert double.dtype == torch.float64
    assert torch.allclose(whole.double(), double, atol=2e-4)


@pytest.mark.parametrize("n", [0, 1, 7, CHUNK // 500 + 3])
def test_chunks_do_not_show(n: int) -> None:
    paths = some_paths(2, 3)
    X = torch.rand(3, n, 2, generator=generator(n), dtype=torch.float64)
    whole = paths.mean[:, None] + paths.waves(X)[0].sum(-1)
    assert paths(X).shape == (3, n)
    assert torch.allclose(paths(X), whole, atol=1e-12)


@pytest.mark.parametrize("warped", [False, True])
def test_reflection_and_permutation_move_the_function(warped: bool) -> None:
    paths = some_paths(3, 2, warped=warped)
    X = torch.rand(2, 5, 3, generator=generator(9), dtype=torch.float64)
    mask = torch.tensor([[True, False, True], [False, False, True]])
    mirrored = torch.where(mask[:, None], 1 - X, X)
    assert torch.allclose(paths.reflected(mask)(X), paths(mirrored), atol=1e-10)
    order = torch.tensor([[2, 0, 1], [1, 0, 2]])
    moved = X.gather(2, order[:, None].expand_as(X))
    assert torch.allclose(paths.permuted(order)(moved), paths(X), atol=1e-10)


def test_warped_paths_are_functions_of_warped_coordinates() -> None:
    paths = some_paths(2, 3, warped=True)
    assert paths.warp is not None
    X = torch.rand(3, 5, 2, generator=generator(9), dtype=torch.float64)
    U = warp(X, paths.warp)
    values = paths.mean[:, None] + paths.waves(U)[0].sum(-1)
    assert torch.allclose(paths(X), values, atol=1e-12)
    assert torch.allclose(paths.stationary(U), values, atol=1e-12)
    assert paths.stationary.warp is None
    assert torch.allclose(paths[1:](X[1:]), values[1:], atol=1e-12)
    assert torch.allclose(paths.to(torch.float32)(X.float()).double(), values, atol=1e-3)


def test_frequencies_of_a_mixed_kernel_are_those_of_both() -> None:
    one = torch.ones(400, dtype=torch.float64)
    seeds = derive_seeds(2, count=400)
    hyper = Hyperparameters(one[:, None], one, one, one)
    smooth = Paths.sample("se", hyper, seeds).frequencies
    rough = Paths.sample("matern52", hyper, seeds).frequencies
    mixed = Paths.sample("mixed", dataclasses.replace(hyper, roughness=0.3 * one), seeds)
    from_rough = mixed.frequencies == rough
    assert (from_rough | (mixed.frequencies == smooth)).all()
    assert from_rough.double().mean() == 0.5
    power = mixed.amplitudes.double().square()  # b x m
    share = (power * from_rough.squeeze(-1)).sum(-1) / power.sum(-1)
    assert share.mean() == pytest.approx(0.3, abs=0.01)
