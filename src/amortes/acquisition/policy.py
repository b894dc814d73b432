"""The default policy: which acquisition suits the results so far, and what to use in the end.

Expected improvement over the best point, as uncertain as that is, goes for a good result at once.
With noise that is not all: what counts is the config that is recommended in the end, and joint
entropy search finds out which is best. Early on it is no better: docs/log.md, 2026-11-18.

Few results leave most uncertainty at the faces of the cube, where acquisitions then go first. But
who sets bounds mostly expects the optimum between them. The policy believes so, too, the less the
more results there are: log gain + c / n log π(x), with π(x) the product over coordinates of
4 x (1 - x) + ε (Hvarfner et al., "πBO: augmenting acquisition functions with user beliefs for
Bayesian optimization", ICLR 2022).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from amortes.acquisition.fitted import Fitted

NOISY = 0.1
"""Noise that matters, in standard deviations of the results."""
ENOUGH = 20
"""Results from which on, with noise, information is worth more than improvement."""
BELIEF, BELIEF_OF_MEANS = 5.0, 2.0
"""c above, for gains and, with noise, for the posterior mean of what is recommended in the end;
chosen on functions outside the benchmark suites: docs/log.md, 2026-11-18 and 2026-11-19."""
AT_THE_FACE = 0.02
"""ε above: what is left of the belief at a face."""
SURE = 0.7
"""Chance of being better than the best result without which a place never tried is not recommended,
if there is no noise: docs/log.md, 2026-11-19."""


def is_noisy(fitted: Fitted) -> bool:
    """Whether there is enough noise to matter; unknown noise is."""
    return fitted.noise_share is None or fitted.noise_share > NOISY


def automatic(fitted: Fitted) -> str:
    """The acquisition that suits the results of the fit."""
    return "jes" if len(fitted.X) >= ENOUGH and is_noisy(fitted) else "logei"


@dataclass(frozen=True)
class LogBelief:
    """c / n log π(x) after n results, at points `m x d`: `m`."""

    n: int
    c: float = BELIEF

    def __call__(self, X: Tensor) -> Tensor:
        """At points `m x d`: `m`."""
        return self.c / self.n * _inside(X).log().sum(-1)

    def with_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The same and its gradient: `m` and `m x d`."""
        return self(X), (4.0 * self.c / self.n) * (1.0 - 2.0 * X) / _inside(X)


def _inside(X: Tensor) -> Tensor:
    """The factors of π(x)."""
    return 4.0 * X * (1.0 - X) + AT_THE_FACE


def worth_using(fitted: Fitted, X: Tensor, mean: Tensor) -> Tensor:
    """What recommendations maximise at points X, `m x d`, of a continuum with these means: `m`."""
    return mean + LogBelief(len(fitted.X), BELIEF_OF_MEANS)(X) if is_noisy(fitted) else mean


def recommended(fitted: Fitted, x: Tensor) -> Tensor:
    """The place to use in the end, `d`: x, that of the best `worth_using`, or the best one tried.

    Without noise the best result is known, and a place never tried has to be better rather surely:
    the maximum of a posterior mean may be an artefact.
    """
    best = fitted.best_points(1)[0]
    if is_noisy(fitted) or bool((x == best).all()):
        return x
    with torch.no_grad():
        chance = float(fitted.chance_of_improvement(x[None]))
    return x if chance >= SURE else best
