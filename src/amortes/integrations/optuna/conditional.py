"""A space some of whose parameters only matter for some values of another.

Where a parameter is inactive it has its default, the middle of its range: configs that differ in
inactive parameters only are one config, with one point. Levesque et al. (Bayesian optimization for
conditional hyperparameter spaces, IJCNN 2017) compare this with alternatives.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from amortes.acquisition.pool import is_among
from amortes.optimiser.space import Config, Space


@dataclass(frozen=True)
class ConditionalSpace(Space):
    """A space with conditions: for some names, a parent and the values of it that activate them.

    A parent has finitely many values and comes before its children in `parameters`.
    """

    conditions: Mapping[str, tuple[str, frozenset[Any]]] = field(default_factory=dict)

    def activity(self, config: Mapping[str, Any]) -> dict[str, bool | None]:
        """Whether each parameter matters; None if that depends on values the config lacks."""
        active: dict[str, bool | None] = {}
        for name in self.free:
            parent, values = self.conditions.get(name, (None, frozenset()))
            if parent is None:
                active[name] = True
            elif active[parent] is not False and parent in config:
                active[name] = config[parent] in values
            else:
                active[name] = active[parent] and None
        return active

    def fill(self, config: Mapping[str, Any]) -> Config:
        """The config, of which values may be missing, with defaults for what does not matter."""
        inactive = [name for name, active in self.activity(config).items() if active is False]
        return {**config, **{name: self._defaults[name] for name in inactive}}

    def project(self, X: Tensor) -> Tensor:
        """The points, `n x d`, of the configs whose regions hold the rows of X."""
        X = super().project(X).clone()
        active: dict[str, Tensor] = {}
        for name, (parent, values) in self.conditions.items():
            place = self.places[parent]
            codes = [self.free[parent].encode(value) for value in values]
            active[name] = is_among(X[:, place], torch.tensor(codes, dtype=X.dtype))
            if parent in active:
                active[name] &= active[parent]
            default = self.free[name].encode(self._defaults[name])
            X[~active[name], self.places[name]] = torch.tensor(default, dtype=X.dtype)
        return X

    @cached_property
    def points(self) -> Tensor | None:
        """All points there are, `m x d`, if they are few."""
        X = super().points
        if X is None or not self.conditions:
            return X
        distinct = dict.fromkeys(map(tuple, self.project(X).tolist()))
        return torch.tensor(list(distinct), dtype=torch.float64)

    @cached_property
    def _defaults(self) -> Config:
        return {name: self.free[name].decode([0.5] * self.free[name].dims) for name in self.free}
