import pytest
import torch

from amortes import linalg
from amortes.errors import DataError


def test_only_singular_matrices_get_jitter() -> None:
    good = torch.eye(3, dtype=torch.float64) * 2
    bad = torch.ones(3, 3, dtype=torch.float64)
    L = linalg.cholesky(torch.stack([good, bad]))
    assert torch.equal(L[0], torch.linalg.cholesky(good))
    assert torch.allclose(L[1] @ L[1].T, bad, atol=1e-6)


def test_hopeless_matrices_are_explained() -> None:
    with pytest.raises(DataError, match="NaN"):
        linalg.cholesky(torch.full((2, 2), torch.nan))
    with pytest.raises(DataError, match="positive definite"):
        linalg.cholesky(-torch.eye(2))
