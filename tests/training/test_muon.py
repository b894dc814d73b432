import pytest
import torch
from torch import nn
from torch.optim import Muon as TorchMuon

from amortes.random import generator
from amortes.training.muon import Muon, orthogonalise


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
