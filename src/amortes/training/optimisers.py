"""How weights follow gradients: AdamW or Muon, a warm-up and a cosine.

AdamW (Loshchilov & Hutter, 2019) decays matrices only. With Muon, vectors, and matrices that are
vectors in disguise, stay with AdamW. Muon (Jordan et al., 2024) orthogonalises the momentum of
matrices. With B the momentum of a gradient G, and its Nesterov look-ahead,

    B <- B + (1 - m) (G - B),    M = G + m (B - G),
    W <- (1 - lr decay) W - 0.2 lr sqrt(max(r, c)) orthogonalise(M),

where `orthogonalise` keeps the singular vectors of the `r x c` matrix M and brings its singular
values to about 1, by five steps of a quintic Newton-Schulz iteration. The factor makes updates as
large as AdamW's (Liu et al., 2025), so that both take the same learning rate.

`torch.optim.Muon` iterates in bfloat16, which a CPU without such instructions emulates: a third of
a training step of the transformer was spent there (docs/log.md, "Muon on a CPU"). Here it is
float32, and matrices of the same shape go together.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from amortes.training.recipes import Recipe

QUINTIC = (3.4445, -4.7750, 2.0315)  # Jordan's: steepest at zero, singular values end in 0.7..1.2
ITERATIONS = 5
MOMENTUM = 0.95


def make_optimisers(parameters: Iterable[nn.Parameter], recipe: Recipe) -> list[Optimizer]:
    """Optimisers that together cover all parameters, each of them once."""
    parameters = list(parameters)
    matrices = [p for p in parameters if p.ndim == 2 and min(p.shape) > 1]
    chosen = {id(p) for p in matrices}
    others = [p for p in parameters if id(p) not in chosen]
    groups = [{"params": others, "weight_decay": 0.0}]
    if recipe.optimiser == "adamw":
        groups.append({"params": matrices, "weight_decay": recipe.weight_decay})
        matrices = []
    optimisers: list[Optimizer] = []
    if groups := [group for group in groups if group["params"]]:
        optimisers.append(AdamW(groups, lr=recipe.lr, betas=recipe.betas))
    if matrices:
        optimisers.append(Muon(matrices, lr=recipe.lr, weight_decay=recipe.weight_decay))
    return optimisers


def learning_rate(recipe: Recipe, step: int) -> float:
    """Linear warm-up over the first `warmup_share` of the steps, then a cosine down to zero.

    A function of the step, so that unlike a `torch.optim.lr_scheduler` it has no state to resume.
    """
    warmup = max(1, round(recipe.warmup_share * recipe.steps))
    if step < warmup:
        return recipe.lr * (step + 1) / warmup
    progress = (step - warmup) / max(1, recipe.steps - warmup)
    return recipe.lr * 0.5 * (1.0 + math.cos(math.pi * progress))


class Muon(Optimizer):
    """Muon, for parameters that are matrices."""

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
