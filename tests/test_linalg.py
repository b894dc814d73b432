import numpy as np
import pytest
import torch

from amortes import linalg
from amortes.errors import DataError
from amortes.random import generator


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


def test_even_errors_as_large_as_the_scale_are_survived() -> None:
    # What was left of the variances of two points near 88 others, of which one had no noise.
    left = torch.tensor([[1.6e-4, -1.0e-2], [-1.0e-2, -0.8]], dtype=torch.float64)
    assert linalg.cholesky(left, scale=torch.tensor(2.6, dtype=torch.float64)).isfinite().all()


def test_hopeless_matrices_are_explained() -> None:
    with pytest.raises(DataError, match="NaN"):
        linalg.cholesky(torch.full((2, 2), torch.nan))
    with pytest.raises(DataError, match="positive definite"):
        linalg.cholesky(-torch.eye(2))


@pytest.mark.parametrize("n", [1, linalg.SMALL, linalg.SMALL + 1, 5 * linalg.SMALL])
def test_triangular_matrices_are_inverted(n: int) -> None:
    A = torch.rand(2, n, n, generator=generator(n), dtype=torch.float64)
    L = linalg.cholesky(A @ A.mT + n * torch.eye(n, dtype=torch.float64))
    inverse = linalg.inverse_triangular(L)
    assert torch.equal(inverse, inverse.tril())
    torch.testing.assert_close(inverse, torch.linalg.inv(L), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("n", [1, 64, 150])
def test_products_with_triangular_matrices(n: int) -> None:
    rng = np.random.default_rng(n)
    L = np.tril(rng.standard_normal((2, 3, n, n)))
    B = rng.standard_normal((2, 3, n, 5))
    np.testing.assert_allclose(linalg.lower_times(L, B), L @ B, atol=1e-12)
    A = B.swapaxes(-1, -2)
    np.testing.assert_allclose(linalg.times_upper(A, L), A @ L.swapaxes(-1, -2), atol=1e-12)
