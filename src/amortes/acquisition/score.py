"""Scores of points, and their gradients."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

Score = Callable[[Tensor], Tensor]
"""Points `m x d` -> how good they are, `m`; differentiable by torch where a search climbs it."""


@runtime_checkable
class Differentiated(Protocol):
    """A score that knows its gradient, in less time than torch takes to differentiate it."""

    def __call__(self, X: Tensor, /) -> Tensor:
        """Scores of points `m x d`: `m`."""

    def with_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of points `m x d`, and their gradients: `m` and `m x d`."""


def with_gradient(score: Score, X: Tensor) -> tuple[Tensor, Tensor]:
    """Scores of points `m x d`, and their gradients: `m` and `m x d`, without a graph."""
    if isinstance(score, Differentiated):
        return score.with_gradient(X)
    return differentiate(score, X)


def differentiate(score: Score, X: Tensor) -> tuple[Tensor, Tensor]:
    """The same by automatic differentiation; no gradient counts as one of zero."""
    with torch.inference_mode(False), torch.enable_grad():
        X = X.detach().clone().requires_grad_()
        f = score(X)
        g = torch.autograd.grad(f.sum(), X)[0] if f.requires_grad else torch.zeros_like(X)
    return f.detach(), g
