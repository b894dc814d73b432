"""How much each parameter matters: its share in the variation of the posterior mean.

The total effect of parameter i on a function m of independent parameters (Sobol, 1993) is the part
of the variance of m that would be left if all parameters but i were known,

    T_i = E[Var(m | all but i)] / Var(m) = E[(m(A) - m(A with i from B))^2] / (2 Var(m)),

with A and B independent uniform configs (Jansen, 1999). Unlike a first-order effect it also counts
what a parameter does only together with others. Total effects of interacting parameters add up to
more than 1; divided by their sum they are shares.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from amortes.optimiser.space import Space

PAIRS = 512


def importance(
    mean: Callable[[Tensor], Tensor], space: Space, rng: torch.Generator
) -> dict[str, float]:
    """Shares of the total effects on `mean`, `m x d -> m`, that sum to 1, largest first.

    Over all values of the parameters, whatever constraints or pool say; one that only matters for
    some values of another counts where it does. All are 0 if the mean is the same everywhere.
    """
    A, B = torch.rand(2, PAIRS, space.d, generator=rng, dtype=torch.float64)
    mixed = []
    for place in space.places.values():
        U = A.clone()
        U[:, place] = B[:, place]
        mixed.append(space.project(U))
    with torch.no_grad():
        at_A = mean(space.project(A))
        effects = torch.stack([(mean(X) - at_A).square().mean() for X in mixed])
    total = float(effects.sum())
    shares = (effects / total if total > 0 else effects).tolist()
    return dict(sorted(zip(space.free, shares, strict=True), key=lambda share: -share[1]))
