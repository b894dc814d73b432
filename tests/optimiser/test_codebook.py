import pytest
import torch

from amortes.optimiser.codebook import CODED, MOST, ONE_HOT, codebook


@pytest.mark.parametrize("k", range(3, ONE_HOT + 1))
def test_few_choices_are_equally_far_apart(k: int) -> None:
    codes = codebook(k)
    assert codes.shape == (k, k)
    torch.testing.assert_close(
        torch.pdist(codes), torch.full((k * (k - 1) // 2,), 2.0**0.5).double()
    )


@pytest.mark.parametrize("k", range(ONE_HOT + 1, CODED + 1))
def test_more_are_corners_that_differ_in_four_coordinates(k: int) -> None:
    codes = codebook(k)
    # No code with this distance has fewer (Brouwer's tables: n = 8, 10, 11 for 16, 32, 64 words).
    assert codes.shape == (k, 8 if k <= 16 else 10 if k <= 32 else 11)
    assert set(codes.flatten().tolist()) == {0.0, 1.0}
    assert torch.pdist(codes, p=1).min() == 4


@pytest.mark.parametrize("k", [CODED + 1, 300, MOST])
def test_many_are_few_coordinates(k: int) -> None:
    codes = codebook(k)
    assert codes.shape == (k, 4)
    assert codes.min() >= 0
    assert codes.max() <= 1
    assert torch.pdist(codes).min() > 1e-3
    assert torch.equal(codes, codebook(k))


def test_uniform_points_are_fairly_uniform_choices() -> None:
    rng = torch.Generator().manual_seed(0)
    for k in (5, 16, 50, 300):
        codes = codebook(k)
        U = torch.rand(400 * k, codes.shape[1], generator=rng, dtype=torch.float64)
        counts = torch.bincount(torch.cdist(U, codes).argmin(1), minlength=k)
        assert counts.min() > 40
        assert counts.max() < 1600
