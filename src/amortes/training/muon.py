"""Muon: momentum of matrices, orthogonalised (Jordan et al., 2024), in full precision.

With B the momentum of a gradient G, and its Nesterov look-ahead,

    B <- B + (1 - m) (G - B),    M = G + m (B - G),
    W <- (1 - lr decay) W - 0.2 lr sqrt(max(r, c)) orthogonalise(M),

where `orthogonalise` keeps the singular vectors of the `r x c` matrix M and brings its singular
values to about 1, by five steps of a quintic Newton-Schulz iteration. The factor makes updates as
large as AdamW's (Liu et al., 2025), so that both take the same learning rate.

`torch.optim.Muon` iterates in bfloat16, which a CPU without such instructions emulates: a third of
a training step of the transformer was spent there (docs/log.md, "Muon on a CPU"). Here it is
float32, and matrices of the same shape go together.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

QUINTIC = (3.4445, -4.7750, 2.0315)  # Jordan's: steepest at zero, singular values end in 0.7..1.2
ITERATIONS = 5
MOMENTUM = 0.95


class Muon(Optimizer):
    """The optimiser of the module's docstring, for parameters that are matrices."""

    def __init__(self, matrices: Iterable[nn.Parameter], *, lr: float, weight_decay: float) -> None:
        super().__init__(list(matrices), {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Move every matrix that has a gradient."""
        for group in self.param_groups:
            alike: defaultdict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    alike[matrix.shape].append(matrix)
            for shape, matrices in alike.items():
                ahead = torch.stack([self._look_ahead(matrix) for matrix in matrices])
                size = 0.2 * group["lr"] * max(shape) ** 0.5
                for matrix, update in zip(matrices, orthogonalise(ahead), strict=True):
                    matrix.mul_(1.0 - group["lr"] * group["weight_decay"])
                    matrix.add_(update, alpha=-size)

    def _look_ahead(self, matrix: nn.Parameter) -> Tensor:
        """Update the momentum of a matrix; returns its Nesterov look-ahead."""
        assert matrix.grad is not None
        state = self.state[matrix]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        momentum: Tensor = state["momentum_buffer"].lerp_(matrix.grad, 1.0 - MOMENTUM)
        return matrix.grad.lerp(momentum, MOMENTUM)


def orthogonalise(M: Tensor) -> Tensor:
    """Matrices `k x r x c` with the singular vectors of M and singular values of about 1."""
    wide = M if M.shape[-2] <= M.shape[-1] else M.mT
    X: Tensor = wide / torch.linalg.matrix_norm(wide, keepdim=True).clamp_min(
        1e-7
    )  # k x r x c, r <= c
    a, b, c = QUINTIC
    for _ in range(ITERATIONS):
        gram = X @ X.mT  # k x r x r
        X = torch.baddbmm(X, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), X, beta=a)
    return X if wide is M else X.mT
