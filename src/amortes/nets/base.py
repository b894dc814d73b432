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
from amortes.prior.gp import GPPrior, Hyperparameters

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
    any_size: bool = False
    """Whether predictions are computed for any number of points, rather than learned for some."""
    trained_points: int | None = None
    """Most points per dataset in training; None if untrained."""
    inference_dtype: torch.dtype = torch.float32
    """Type of the parameters in use; float64 where rounding would disturb line searches."""

    needs_alpha: bool = True
    """Whether gains are not known without an alpha stage."""

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

    @abstractmethod
    def gain(self, state: State, Xq: Tensor, names: Sequence[str] = GAINS) -> Predictive:
        """Distribution of the information gained at Xq: batch shape `b x q x len(names)`.

        The acquisition values are its mean.
        """

    def expected_gain(self, state: State, Xq: Tensor, name: str) -> Tensor:
        """The mean of one gain: `b x q`."""
        return self.gain(state, Xq, (name,)).mean[..., 0]

    def latent(self, state: State, Xq: Tensor, hint: Hint | None = None) -> Predictive:
        """Distribution of the function without noise; that of y if nobody knows another."""
        return self.predict(state, Xq, hint)

    # What some networks know beyond that; None from those that do not.

    def mean(self, state: State, Xq: Tensor) -> Tensor | None:
        """Posterior mean at Xq, `b x q`, if there is a faster way than `predict`."""
        return None

    def observed_mean(self, state: State) -> Tensor | None:
        """Posterior mean at the points observed: `b x n`."""
        return None

    def improvement(self, state: State, Xq: Tensor, x: Tensor) -> Predictive | None:
        """Distribution of f(Xq) - f(x), x `b x d`: batch shape `b x q`."""
        return None

    def log_expected_improvement(self, state: State, Xq: Tensor, x: Tensor) -> Tensor | None:
        """log E max(f(Xq) - f(x), 0), x `b x d`: `b x q`, if it is faster than `improvement`."""
        return None

    def log_expected_improvement_with_gradient(
        self, state: State, Xq: Tensor, x: Tensor
    ) -> tuple[Tensor, Tensor] | None:
        """The same and its gradient by Xq, `b x q` and `b x q x d`, without a graph."""
        return None

    def expected_gain_with_gradient(
        self, state: State, Xq: Tensor, name: str
    ) -> tuple[Tensor, Tensor] | None:
        """`expected_gain` and its gradient by Xq, `b x q` and `b x q x d`, without a graph."""
        return None

    def correlation(self, state: State, Xq: Tensor, *, noise: bool) -> Tensor | None:
        """Correlations of f (or y, with noise) at the q points of each batch: `b x q x q`.

        One dataset's state also takes several batches of points.
        """
        return None

    def rough_moments(self, state: State, Xq: Tensor) -> tuple[Tensor, Tensor] | None:
        """Roughly mean and standard deviation of f at Xq, `b x q` each, in little time."""
        return None

    def lengthscale(self, state: State) -> Tensor | None:
        """Lengths over which functions vary along each coordinate: `b x d`."""
        return None

    def noise_sd(self, state: State) -> Tensor | None:
        """Standard deviation of the noise: `b`."""
        return None

    has_evidence: bool = False
    """Whether it knows the density of its data, which the methods that follow are about."""

    def condition_likeliest(
        self, X: Tensor, Y: Tensor, bonus: Tensor, earlier: State | None = None
    ) -> tuple[State, Tensor]:
        """`condition` on that of m alternatives Y, `b x m x n`, with the best evidence.

        `bonus`, `b x m x n`, what each result adds to the evidence of each alternative, is counted
        with it; the alternative that seems best so far comes first. Also returns which it is, `b`.
        `earlier` is the state of most of the same data, to begin with.
        """
        raise NotImplementedError

    def with_results(self, state: State, X: Tensor, y: Tensor) -> State | None:
        """The state with a few more results instead of pending points.

        X `b x m x d`, y `b x m`. In a fraction of the time of `condition`; None if that would not
        do, because they are a surprise.
        """
        return None

    def log_evidence(self, state: State) -> Tensor:
        """Log density of the data: `b`."""
        raise NotImplementedError

    def inference_loss(
        self, X: Tensor, y: Tensor, hyper: Hyperparameters
    ) -> dict[str, Tensor] | None:
        """What the base stage minimises, `loss`, and its terms; None: the loss of predictions.

        X `b x n x d`, y `b x n`, drawn from the prior with these hyperparameters, `b`.
        """
        return None

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
