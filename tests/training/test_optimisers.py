import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW
from torch.optim import Muon as TorchMuon
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR

from amortes.random import generator
from amortes.training.optimisers import Muon, learning_rate, make_optimisers, orthogonalise
from tests.training.fake import FakeNetwork, fake_recipe


def test_schedule_agrees_with_torchs() -> None:
    recipe = fake_recipe(steps=200, warmup_share=0.05, lr=0.3)
    optimiser = SGD([nn.Parameter(torch.zeros(1))], lr=0.3)
    warmup = LinearLR(optimiser, start_factor=0.1, total_iters=9)
    for step in range(10):
        assert learning_rate(recipe, step) == pytest.approx(warmup.get_last_lr()[0])
        optimiser.step()
        warmup.step()
    optimiser = SGD([nn.Parameter(torch.zeros(1))], lr=0.3)
    cosine = CosineAnnealingLR(optimiser, T_max=190)
    for step in range(10, 200):
        assert learning_rate(recipe, step) == pytest.approx(cosine.get_last_lr()[0], abs=1e-12)
        optimiser.step()
        cosine.step()


def test_schedule_of_a_single_step() -> None:
    assert learning_rate(fake_recipe(steps=1, lr=0.5), 0) == 0.5


def test_adamw_decays_matrices_only(network: FakeNetwork) -> None:
    (adamw,) = make_optimisers(network.base_parameters(), fake_recipe(weight_decay=0.3))
    assert isinstance(adamw, AdamW)
    for group in adamw.param_groups:
        assert {p.ndim for p in group["params"]} == ({2} if group["weight_decay"] else {1})
    assert {g["weight_decay"] for g in adamw.param_groups} == {0.0, 0.3}


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_every_parameter_is_covered_once(network: FakeNetwork, kind: str) -> None:
    parameters = [*network.base_parameters(), nn.Parameter(torch.zeros(5, 1))]
    optimisers = make_optimisers(parameters, fake_recipe(optimiser=kind))
    covered = [p for o in optimisers for g in o.param_groups for p in g["params"]]
    assert sorted(map(id, covered)) == sorted(map(id, parameters))


def test_muon_takes_true_matrices_only(network: FakeNetwork) -> None:
    parameters = [*network.base_parameters(), nn.Parameter(torch.zeros(5, 1))]
    adamw, muon = make_optimisers(parameters, fake_recipe(optimiser="muon"))
    assert isinstance(adamw, AdamW)
    assert isinstance(muon, Muon)
    assert {tuple(p.shape) for g in muon.param_groups for p in g["params"]} == {(8, 10), (6, 8)}


@pytest.mark.parametrize("shape", [(3, 5, 9), (3, 9, 5), (1, 4, 4)])
def test_singular_vectors_stay_and_values_become_about_one(shape: tuple[int, ...]) -> None:
    M = torch.randn(shape, generator=generator(1), dtype=torch.float64)
    U, S, Vh = torch.linalg.svd(M, full_matrices=False)
    values = U.mT @ orthogonalise(M) @ Vh.mT  # diagonal: the singular values after the iteration
    diagonal = values.diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(values, torch.diag_embed(diagonal), rtol=0, atol=1e-9)
    assert (S / S[..., :1]).min() < 0.5  # they were not alike before
    assert 0.6 < diagonal.min() < diagonal.max() < 1.3


def test_no_gradient_is_no_update() -> None:
    assert torch.equal(orthogonalise(torch.zeros(2, 3, 4)), torch.zeros(2, 3, 4))
    matrix = nn.Parameter(torch.ones(3, 4))
    Muon([matrix], lr=0.1, weight_decay=0.1).step()
    assert torch.equal(matrix, torch.ones(3, 4))


def test_steps_are_those_of_torch() -> None:
    rng = generator(2)
    start = [torch.randn(4, 7, generator=rng) for _ in range(2)] + [
        torch.randn(6, 3, generator=rng)
    ]
    ours = [nn.Parameter(t.clone()) for t in start]
    torchs = [nn.Parameter(t.clone()) for t in start]
    optimisers = [
        Muon(ours, lr=0.05, weight_decay=0.2),
        TorchMuon(torchs, lr=0.05, weight_decay=0.2, adjust_lr_fn="match_rms_adamw"),
    ]
    for _ in range(4):
        for own, other in zip(ours, torchs, strict=True):
            own.grad = torch.randn(own.shape, generator=rng)
            other.grad = own.grad.clone()
        for optimiser in optimisers:
            optimiser.step()
    for own, other, before in zip(ours, torchs, start, strict=True):
        moved = (other.detach() - before).norm()
        assert (own - other).detach().norm() < 0.03 * moved  # bfloat16 has 8 bits
