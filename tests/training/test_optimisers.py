import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR

from amortes.training.muon import Muon
from amortes.training.optimisers import learning_rate, make_optimisers
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
