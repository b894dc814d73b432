"""What every network offers: condition once, then answer any number of queries.

    state = network.condition(X, y)                     # once per dataset
    network.predict(state, Xq)                          # q(y | D, x)
    network.predict(state, Xq, Hint(x=x_star))          # q(y | D, x, x*)        also f*, or both
    network.gain(state, Xq)                             # distributions of the PES, MES, JES gains
    network.with_pending(state, X_pending)              # the same data, other points under way

All calls take batches of b datasets, are differentiable in Xq, keep float64, and draw no random
numbers. y is expected on the scale of the prior (roughly standardised); users' units are handled
one level up.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from amortes.nets.distributions import Predictive
from amortes.prior.gp import GPPrior

GAINS = ("pes", "mes", "jes")
"""Names of the gains: of information about x*, f*, and both."""


@dataclass(frozen=True)
class Hint:
    """What is assumed known about the optimum: its place, its value, or both."""

    x: Tensor | None = None  # b x d
    f: Tensor | None = None  # b


State = TypeVar("State")


class Network(nn.Module, ABC, Generic[State]):
    """A base network (predictions) and an alpha network (gains) behind one interface."""

    prior: GPPrior
    trained_points: int | None = None
    """Most points per dataset in training; None if untrained."""
    inference_dtype: torch.dtype = torch.float32
    """Type of the parameters in use; float64 where rounding would disturb line searches."""

    cpu_only: bool = False
    """Whether it makes tensors of its own, all on the CPU."""

    @abstractmethod
    def condition(self, X: Tensor, y: Tensor, X_pending: Tensor | None = None) -> State:
        """Digest the data: X `b x n x d` in the unit cube, y `b x n`, X_pending `b x p x d`.

        Pending points are being evaluated: they count as observed as far as uncertainty goes, but
        have no value yet.
        """

    @abstractmethod
    def with_pending(self, state: State, X_pending: Tensor | None) -> State:
        """What `condition` would make of the data of `state` with other pending points."""

    @abstractmethod
    def predict(self, state: State, Xq: Tensor, hint: Hint | None = None) -> Predictive:
        """Distribution of a noisy observation y at Xq, `b x q x d`: batch shape `b x q`."""

    def teach(self, state: State, Xq: Tensor, hint: Hint | None = None) -> Predictive:
        """The predictions whose entropies the alpha stage learns from: those of `predict`."""
        return self.predict(state, Xq, hint)

    def imagined_gains(self, state: State, Xq: Tensor) -> Tensor | None:
        """The information gained at Xq if one of s optima were true: `b x q x s x 3`.

        Optima are drawn from what the network believes, for the alpha stage to learn from beside
        the true one; None from networks that cannot draw.
        """
        return None

    def require_draws(self) -> None:
        """Raise `ConfigError` if the configuration leaves no draws for `imagined_gains`."""

    @abstractmethod
    def gain(self, state: State, Xq: Tensor, names: Sequence[str] = GAINS) -> Predictive:
        """Distribution of the information gained at Xq: batch shape `b x q x len(names)`.

        The acquisition values are its mean.
        """

    @abstractmethod
    def base_parameters(self) -> Iterator[nn.Parameter]:
        """Parameters trained by the base stage and frozen afterwards."""

    @abstractmethod
    def alpha_parameters(self) -> Iterator[nn.Parameter]:
        """Parameters trained by the alpha stage."""

    @abstractmethod
    def start_alpha(self) -> None:
        """Prepare the alpha stage once the base is trained (for instance copy its trunk)."""

    @property
    @abstractmethod
    def config(self) -> Any:
        """The frozen dataclass this network was built from; stored with its weights."""
