"""A tiny network behind the real interface, and a recipe for it: what the training tests train.

Importing this module makes `network="fake"` known.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from amortes.nets.base import GAINS, Hint, Network
from amortes.nets.distributions import GaussianMixture, Riemann, asinh_borders
from amortes.nets.kernel import KernelConfig
from amortes.prior.gp import GPPrior, Marginal
from amortes.prior.tasks import TaskConfig
from amortes.training import settings
from amortes.training.export import FORMAT, VERSION, Card
from amortes.training.recipes import ARCHITECTURES, Recipe, Stage
from amortes.training.tensorfile import write_tensors

PRIOR = GPPrior(name="tiny", max_dim=2, noise_sd=Marginal.lognormal(-2.0, 0.5))


@dataclass(frozen=True, kw_only=True)
class FakeConfig:
    """Sizes, and an effort on which no weights depend."""

    width: int = 8
    gain_width: int = 8
    bars: int = 16
    effort: int = 1


class FakeNetwork(Network[Tensor]):
    """Two small MLPs on summary statistics of the dataset."""

    alpha_started: Tensor
    borders: Tensor

    def __init__(self, config: FakeConfig, prior: GPPrior) -> None:
        super().__init__()
        self._config, self.prior = config, prior
        self.base = nn.Sequential(
            nn.Linear(10, config.width), nn.Tanh(), nn.Linear(config.width, 6)
        )
        self.alpha = nn.Sequential(
            nn.Linear(6, config.gain_width),
            nn.Tanh(),
            nn.Linear(config.gain_width, 3 * config.bars),
        )
        self.register_buffer("alpha_started", torch.zeros(()))
        self.register_buffer("borders", asinh_borders(config.bars, limit=30.0, linear=0.2).float())

    def condition(self, X: Tensor, y: Tensor, X_pending: Tensor | None = None) -> Tensor:
        pending = 0 if X_pending is None else X_pending.shape[1]
        count = torch.full_like(y[:, 0], X.shape[1] / 10)
        hidden = torch.full_like(count, pending / 4)
        state = torch.stack([X.mean((1, 2)), y.mean(1), y.amax(1), count, hidden], dim=-1)
        return state.to(self.borders)  # b x 5

    def with_pending(self, state: Tensor, X_pending: Tensor | None) -> Tensor:
        pending = 0 if X_pending is None else X_pending.shape[1]
        return torch.cat([state[:, :-1], torch.full_like(state[:, -1:], pending / 4)], dim=-1)

    def predict(self, state: Tensor, Xq: Tensor, hint: Hint | None = None) -> GaussianMixture:
        hint = hint or Hint()
        zero = torch.zeros_like(state[:, 0])
        x = zero if hint.x is None else hint.x.mean(-1).to(state)
        f = zero if hint.f is None else hint.f.to(state)
        flags = [zero + (hint.x is not None), zero + (hint.f is not None)]
        told = torch.stack([x, f, *flags], dim=-1)  # b x 4
        out = self.base(self._inputs(torch.cat([state, told], dim=-1), Xq)).to(Xq)  # b x q x 6
        logits, mean, log_sd = out.chunk(3, dim=-1)
        return GaussianMixture(logits.log_softmax(-1), mean, log_sd.clamp(-4, 4).exp())

    def gain(self, state: Tensor, Xq: Tensor, names: Sequence[str] = GAINS) -> Riemann:
        logits = self.alpha(self._inputs(state, Xq)).unflatten(-1, (3, -1))
        chosen = logits[:, :, [GAINS.index(name) for name in names]]
        return Riemann(chosen.to(Xq), self.borders.to(Xq))

    def base_parameters(self) -> Iterator[nn.Parameter]:
        return self.base.parameters()

    def alpha_parameters(self) -> Iterator[nn.Parameter]:
        return self.alpha.parameters()

    def start_alpha(self) -> None:
        self.alpha_started.fill_(1.0)

    @property
    def config(self) -> FakeConfig:
        return self._config

    def _inputs(self, rows: Tensor, Xq: Tensor) -> Tensor:
        rows = rows[:, None].expand(-1, Xq.shape[1], -1)
        return torch.cat([rows, Xq.mean(-1, keepdim=True).to(rows)], dim=-1)


ARCHITECTURES["fake"] = (FakeConfig, FakeNetwork)


def fake_recipe(stage: Stage = "base", **changes: Any) -> Recipe:
    """A few steps on tiny batches."""
    recipe = Recipe(
        name="fake",
        stage=stage,
        network="fake",
        config=FakeConfig(),
        prior=PRIOR,
        tasks=TaskConfig(batch_size=4, num_queries=5, max_context=6),
        steps=20,
        lr=1e-2,
        log_every=5,
        save_every=10,
        validate_every=10,
        validation_batches=2,
        pending_share=0.3,
    )
    return dataclasses.replace(recipe, **changes)


def export_untrained(path: Path, config: KernelConfig, prior: GPPrior) -> Card:
    """Write a kernel network of which nothing is learned."""
    about = settings.to_dict(config), settings.to_dict(prior)
    card = Card(
        network="kernel", config=about[0], prior=about[1], stages={}, scores={}, parameters=0
    )
    write_tensors(path, {}, vars(card), kind=FORMAT, version=VERSION)
    return card
