import pytest
import torch

from amortes.corpora.augment import Symmetry
from amortes.prior.gp import PRIORS
from amortes.prior.kernels import covariance
from amortes.prior.newton import maximise_paths
from amortes.prior.paths import Paths
from amortes.random import derive_seeds, generator


@pytest.mark.parametrize("name", ["paper", "real"])
def test_paths_points_and_hyperparameters_move_together(name: str) -> None:
    seeds = derive_seeds(31, count=8)
    prior = PRIORS[name]
    hyper = prior.sample(seeds, 4)
    paths = Paths.sample(prior.kernel, hyper, seeds, dtype=torch.float64)
    symmetry = Symmetry.random(8, 4, generator(0))
    moved = symmetry.paths(paths)
    x = torch.rand(8, 4, generator=generator(1), dtype=torch.float64)
    assert torch.allclose(moved(symmetry.points(x)[:, None]), paths(x[:, None]), atol=1e-10)
    optimum = maximise_paths(paths)
    assert torch.allclose(moved(symmetry.points(optimum.x)[:, None])[:, 0], optimum.f, atol=1e-9)
    after = symmetry.hyperparameters(hyper)
    if name == "paper":
        # The same path drawn under the moved lengthscales has features with the moved scales.
        scale = moved.frequencies.std(1) * after.lengthscale
        assert torch.allclose(scale, torch.ones_like(scale), atol=0.15)
    # Covariances of moved points are those of the points before.
    X = torch.rand(8, 5, 4, generator=generator(2), dtype=torch.float64)
    there = torch.stack([symmetry.points(X[:, i]) for i in range(5)], dim=1)
    before = covariance(prior.kernel, hyper, X, X)
    assert torch.allclose(covariance(prior.kernel, after, there, there), before, atol=1e-9)


def test_symmetries_are_uniform() -> None:
    symmetry = Symmetry.random(3000, 3, generator(2))
    assert torch.equal(symmetry.order.sort(1).values, torch.arange(3).expand(3000, 3))
    first = torch.bincount(symmetry.order[:, 0], minlength=3) / 3000
    assert (first - 1 / 3).abs().max() < 0.05
    assert abs(symmetry.mirror.double().mean() - 0.5) < 0.03
