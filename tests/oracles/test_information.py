import math

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor

from amortes.oracles.information import Samples, information, nested_leaves
from amortes.random import generator

N, LEAF = 1 << 14, 256


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("noise", [0.01, 0.3, 1.0])
def test_jointly_gaussian_variables(correlation: float, noise: float) -> None:
    S = normal(N, 1)
    f = correlation * S + math.sqrt(1 - correlation**2) * normal(N, 1, seed=1)
    noise_sd = torch.full((N,), noise, dtype=torch.float64)
    unrelated = normal(N, seed=2)
    gain = information(Samples(f, noise_sd, S, unrelated), LEAF, generator(3))[0]
    exact = 0.5 * math.log((1 + noise**2) / (1 - correlation**2 + noise**2))
    assert gain[0].item() == pytest.approx(exact, rel=0.02, abs=0.01)
    assert gain[1].item() == pytest.approx(0.0, abs=0.01)
    assert gain[2].item() == pytest.approx(exact, abs=0.03)


def two_points(correlation: float, noise: float) -> tuple[float, float, float]:
    """I(y; x*), I(y; f*), I(y; both) for y at the first of two points, by dense integration."""
    a = np.linspace(-5.5, 5.5, 701)
    A, B = np.meshgrid(a, a, indexing="ij")
    precision = np.linalg.inv(np.array([[1, correlation], [correlation, 1]]))
    P = np.exp(
        -0.5 * (precision[0, 0] * A**2 + 2 * precision[0, 1] * A * B + precision[1, 1] * B**2)
    )
    P /= P.sum()
    y = np.linspace(-5.5 - 5 * noise, 5.5 + 5 * noise, 801)
    dy = y[1] - y[0]
    kernel = np.exp(-0.5 * ((y[:, None] - a) / noise) ** 2)

    def weighted_entropy(mass: np.ndarray) -> float:
        q = kernel @ mass
        q = np.maximum(q / (q.sum() * dy), 1e-300)
        return float(mass.sum() * -(q * np.log(q)).sum() * dy)

    total = weighted_entropy(P.sum(1))
    first, second = np.tril(P, -1) + np.diag(np.diag(P)), np.triu(P, 1)
    given_x = weighted_entropy(first.sum(1)) + weighted_entropy(second.sum(1))
    given_f = given_both = 0.0
    for m in range(len(a)):
        at_max = np.zeros(len(a))
        at_max[m] = first[m].sum()
        below = second[:, m]
        given_f += weighted_entropy(at_max + below)
        given_both += weighted_entropy(at_max) + (weighted_entropy(below) if m else 0.0)
    return total - given_x, total - given_f, total - given_both


@pytest.mark.parametrize(("correlation", "noise"), [(0.0, 0.5), (0.5, 0.1), (-0.5, 1.0)])
def test_the_larger_of_two_gaussian_values(correlation: float, noise: float) -> None:
    root = torch.linalg.cholesky(
        torch.tensor([[1, correlation], [correlation, 1]], dtype=torch.float64)
    )
    f = normal(4 * N, 2) @ root.mT
    f_star, winner = f.max(1)
    noise_sd = torch.full((4 * N,), noise, dtype=torch.float64)
    samples = Samples(f[:, :1], noise_sd, winner[:, None].double(), f_star)
    gain = information(samples, LEAF, generator(0))[0]
    for actual, exact in zip(gain.tolist(), two_points(correlation, noise), strict=True):
        assert actual == pytest.approx(exact, rel=0.05, abs=0.01)


def test_noise_levels_are_part_of_the_distribution() -> None:
    """x* tells which of two noise levels there is, and nothing else."""
    loud = (torch.arange(N) % 2).double()
    noise_sd = 0.1 + 0.9 * loud
    f = 1e-6 * normal(N, 1)
    gain = information(Samples(f, noise_sd, loud[:, None], normal(N, seed=1)), LEAF, generator(0))
    y = torch.linspace(-6, 6, 4001, dtype=torch.float64)
    components = [torch.from_numpy(scipy.stats.norm.pdf(y, scale=sd)) for sd in (0.1, 1.0)]
    q = 0.5 * (components[0] + components[1])
    total = -torch.trapezoid(q * q.log(), y).item()
    known = sum(0.5 * math.log(2 * math.pi * math.e * sd**2) for sd in (0.1, 1.0)) / 2
    assert gain[0, 0].item() == pytest.approx(total - known, rel=0.1)
    assert gain[0, 1].item() == pytest.approx(0.0, abs=0.01)


def test_ties_do_not_keep_functions_of_one_draw_together() -> None:
    """All optima on the boundary: x* says nothing, however the functions were ordered."""
    noise_sd = torch.linspace(-4.0, 0.0, N, dtype=torch.float64).exp()
    samples = Samples(
        normal(N, 1), noise_sd, torch.zeros(N, 1, dtype=torch.float64), normal(N, seed=1)
    )
    gain = information(samples, LEAF, generator(0))[0]
    assert gain.abs().max().item() < 0.01


def test_small_gains_are_resolved_where_noise_dominates() -> None:
    S = normal(N, 1)
    f = 0.1 * (S + normal(N, 1, seed=1))
    noise_sd = torch.ones(N, dtype=torch.float64)
    gain = information(Samples(f, noise_sd, S, normal(N, seed=2)), LEAF, generator(0))
    exact = 0.5 * math.log(1.02 / 1.01)
    assert gain[0, 0].item() == pytest.approx(exact, abs=3e-4)


def test_leaves_are_a_partition_into_similar_rows() -> None:
    S = normal(512, 2)
    leaves = nested_leaves(S, 32)
    assert leaves.shape == (16, 32)
    assert torch.equal(leaves.flatten().sort().values, torch.arange(512))
    within = S[leaves].var(1).mean(0)
    assert (within < 0.25 * S.var(0)).all()
    one = nested_leaves(S[:, :1], 32)
    assert (S[one, 0].amax(1)[:-1] <= S[one, 0].amin(1)[1:]).all()
