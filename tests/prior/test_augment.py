import torch

from amortes.prior.augment import Symmetry
from amortes.prior.gp import PRIORS
from amortes.prior.newton import maximise
from amortes.prior.paths import Paths
from amortes.random import derive_seeds, generator


def test_paths_points_and_lengthscales_move_together() -> None:
    seeds = derive_seeds(31, count=8)
    hyper = PRIORS["paper"].sample(seeds, 4)
    paths = Paths.sample("se", hyper, seeds, dtype=torch.float64)
    symmetry = Symmetry.random(8, 4, generator(0))
    moved = symmetry.paths(paths)
    x = torch.rand(8, 4, generator=generator(1), dtype=torch.float64)
    assert torch.allclose(moved(symmetry.points(x)[:, None]), paths(x[:, None]), atol=1e-10)
    optimum = maximise(paths)
    assert torch.allclose(moved(symmetry.points(optimum.x)[:, None])[:, 0], optimum.f, atol=1e-9)
    # The same path drawn under the moved lengthscales has features with the moved scales.
    scale = moved.frequencies.std(1) * symmetry.hyperparameters(hyper).lengthscale
    assert torch.allclose(scale, torch.ones_like(scale), atol=0.15)


def test_symmetries_are_uniform() -> None:
    symmetry = Symmetry.random(3000, 3, generator(2))
    assert torch.equal(symmetry.order.sort(1).values, torch.arange(3).expand(3000, 3))
    first = torch.bincount(symmetry.order[:, 0], minlength=3) / 3000
    assert (first - 1 / 3).abs().max() < 0.05
    assert abs(symmetry.mirror.double().mean() - 0.5) < 0.03
