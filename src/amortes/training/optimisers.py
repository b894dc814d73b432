"""How weights follow gradients: AdamW or Muon, a warm-up and a cosine.

AdamW (Loshchilov & Hutter, 2019) decays matrices only. With Muon, vectors, and matrices that are
vectors in disguise, stay with AdamW.
"""

import math
from collections.abc import Iterable

from torch import nn
from torch.optim import AdamW, Optimizer

from amortes.training.muon import Muon
from amortes.training.recipes import Recipe


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
