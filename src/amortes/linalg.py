"""Linear algebra that does not give up."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from amortes.errors import DataError

JITTERS = (1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)
SMALL = 64
"""Rows of triangular matrices up to which it does not pay to leave out zeros."""

Array = NDArray[np.float64]


def cholesky(A: Tensor, scale: Tensor | None = None) -> Tensor:
    """Lower Cholesky factors of `... x n x n`, adding jitter only to the matrices that need it.

    The jitter grows until the factorisation works. It is relative to `scale`, `...`, by default the
    mean diagonal of each matrix.
    """
    L: Tensor
    L, info = torch.linalg.cholesky_ex(A)
    if not info.any():
        return L
    if scale is None:
        scale = A.diagonal(dim1=-2, dim2=-1).mean(-1)
    shift = torch.zeros_like(scale)
    for jitter in JITTERS:
        failed = info > 0
        if not failed.any():
            return L
        shift = torch.where(failed, jitter * scale, shift)
        ridge = torch.diag_embed(shift[..., None].expand(A.shape[:-1]))
        L, info = torch.linalg.cholesky_ex(A + ridge)
    if (info > 0).any():
        raise DataError(
            "a covariance matrix is not positive definite, or contains NaN or infinity."
        )
    return L


def inverse_triangular(L: Tensor) -> Tensor:
    """L^-1 of lower triangular matrices `... x n x n`.

    By halves: [A 0; C D]^-1 = [A^-1 0; -D^-1 C A^-1, D^-1] takes a third of the operations of a
    triangular system with n right-hand sides, which is what PyTorch offers.
    """
    n = L.shape[-1]
    if n <= SMALL:
        eye = torch.eye(n, dtype=L.dtype).expand_as(L)
        inverse: Tensor = torch.linalg.solve_triangular(L, eye, upper=False)
        return inverse
    half = n // 2
    first, last = inverse_triangular(L[..., :half, :half]), inverse_triangular(L[..., half:, half:])
    whole = torch.zeros_like(L)
    whole[..., :half, :half], whole[..., half:, half:] = first, last
    whole[..., half:, :half] = -(last @ (L[..., half:, :half] @ first))
    return whole


def lower_times(L: Array, B: Array) -> Array:
    """L B for lower triangular L, `... x n x n`, and B, `... x n x m`, by blocks of rows."""
    n = L.shape[-1]
    if n <= SMALL:
        product: Array = L @ B
        return product
    product = np.empty_like(B, order="C")
    for i in range(0, n, SMALL):
        j = min(n, i + SMALL)
        np.matmul(L[..., i:j, :j], B[..., :j, :], out=product[..., i:j, :])
    return product


def times_upper(A: Array, L: Array) -> Array:
    """A L' for lower triangular L, `... x n x n`, and A, `... x m x n`, by blocks of columns."""
    n, U = L.shape[-1], L.swapaxes(-1, -2)
    if n <= SMALL:
        product: Array = A @ U
        return product
    product = np.empty(A.shape)
    for i in range(0, n, SMALL):
        j = min(n, i + SMALL)
        np.matmul(A[..., :j], U[..., :j, i:j], out=product[..., i:j])
    return product
