"""Functions drawn from a fully Bayesian GP prior, whose maxima are found by search.

A function is a pure function of (prior, d, index): the same under any noise, whose standard
deviation is given rather than drawn, so that one can compare low with high noise.
"""

import hashlib
import json
from typing import Any

import torch
from torch import Tensor

from amortes.bench.protocol import Problem
from amortes.prior.gp import GPPrior
from amortes.prior.newton import NewtonConfig, maximise_paths
from amortes.prior.paths import Paths
from amortes.random import derive_seeds

BUDGET = 8  # times the search that training uses: a few milliseconds against a whole optimisation
SEED = 0x626F  # apart from the seeds of training streams, which count up from zero


class PriorFunction(Problem):
    """Function number `index` in dimension d of a prior, observed with the given noise."""

    best: float

    def __init__(self, prior: GPPrior, *, d: int, index: int, noise_sd: float) -> None:
        self.name = f"{label(prior)}-d{d}-noise{noise_sd:g}-f{index}"
        self.d, self.noise_sd = d, noise_sd
        seeds = derive_seeds(SEED, d, index, count=2)
        hyper = prior.sample(seeds[:1], d)
        self._path = Paths.sample(prior.kernel, hyper, seeds[1:], dtype=torch.float64)
        self.best = float(maximise_paths(self._path, NewtonConfig.for_dim(d, BUDGET)).f)

    def value(self, X: Tensor) -> Tensor:
        """The path at X, `m x d`: `m`."""
        return self._path(X[None]).squeeze(0)


def label(prior: GPPrior) -> str:
    """Name of the prior, and eight characters that change with anything else about it."""
    description: dict[str, Any] = prior.to_dict()
    name = description.pop("name")
    text = json.dumps(description, sort_keys=True)
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
