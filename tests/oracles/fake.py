"""A network behind the real interface whose answers are known."""

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from amortes.nets.base import GAINS, Hint, Network
from amortes.nets.distributions import GaussianMixture
from amortes.prior.gp import GPPrior

SDS = {(False, False): 2.0, (True, False): 1.0, (False, True): 0.5, (True, True): 0.25}
"""By whether x* and f* are told."""


class KnownNetwork(Network[Tensor]):
    """Predicts N(mean y, sd), sd by the hint; its gains are a given function of x."""

    def __init__(self, gains: Callable[[Tensor], Tensor], prior: GPPrior | None = None) -> None:
        super().__init__()
        self.gains, self.prior = gains, prior or GPPrior()

    def condition(self, X: Tensor, y: Tensor, X_pending: Tensor | None = None) -> Tensor:
        return y.mean(1, keepdim=True)

    def with_pending(self, state: Tensor, X_pending: Tensor | None) -> Tensor:
        return state

    def predict(self, state: Tensor, Xq: Tensor, hint: Hint | None = None) -> GaussianMixture:
        hint = hint or Hint()
        means = state.expand(Xq.shape[:2])[..., None]
        sd = SDS[hint.x is not None, hint.f is not None]
        return GaussianMixture(torch.zeros_like(means), means, torch.full_like(means, sd))

    def gain(self, state: Tensor, Xq: Tensor, names: Sequence[str] = GAINS) -> GaussianMixture:
        means = self.gains(Xq)[..., [GAINS.index(name) for name in names], None]
        return GaussianMixture(torch.zeros_like(means), means, torch.ones_like(means))

    def base_parameters(self) -> Iterator[nn.Parameter]:
        return iter(())

    def alpha_parameters(self) -> Iterator[nn.Parameter]:
        return iter(())

    def start_alpha(self) -> None:
        pass

    @property
    def config(self) -> None:
        return None


def gaussian_entropy(sd: float) -> float:
    return 0.5 * math.log(2 * math.pi * math.e * sd**2)
