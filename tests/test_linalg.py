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


def test_each_matrix_gets_the_jitter_it_needs() -> None:
    eye = torch.eye(2, dtype=torch.float64)
    # The smallest eigenvalues are 2, -3e-9, -3e-5 and -3e-7.
    A = torch.stack([2 * eye, *(eye - (1 + e) * eye.flip(0) for e in (3e-9, 3e-5, 3e-7))])
    L = linalg.cholesky(A)
    added = (L @ L.mT - A).diagonal(dim1=-2, dim2=-1).mean(-1)
    assert added.tolist() == pytest.approx([0.0, 1e-8, 1e-4, 1e-6], rel=1e-4, abs=1e-14)


def test_hopeless_matrices_are_explained() -> None:
    with pytest.raises(DataError, match="NaN"):
        linalg.cholesky(torch.full((2, 2), torch.nan))
    with pytest.raises(DataError, match="positive definite"):
        linalg.cholesky(-torch.eye(2))
