"""The paper's own maximiser of sample paths: first-order ascent from many starting points.

All samples of a path move together, with the closed-form gradient g,

    plain:  x <- x + rate * g            Adam:  x <- x + rate * m / (sqrt(v) + 1e-8),

m and v being the bias-corrected running means of g and g^2 (Kingma & Ba, 2015). When the best
value over the samples has not improved by `tol` for `patience` steps, the rate is multiplied by
`decay_factor`; after `max_decays` such decays the path is finished.

The eleven hyperparameters and their grid are those of Rakotoarison et al. (ICML 2026), "α-PFN:
Fast Entropy Search via In-Context Learning". `ensemble` chooses among them;
`amortes.prior.newton` is what amortes uses instead.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amortes.errors import ConfigError, require_least
from amortes.prior.newton import Optimum
from amortes.prior.paths import CHUNK, Paths
from amortes.prior.warp import unwarp
from amortes.random import derive_seeds

GRID: dict[str, tuple[bool | int | float, ...]] = {
    "adam": (True, False),
    "init_lr": (1e-3, 1e-2, 1e-1, 1.0),
    "resample_init": (True, False),
    "num_samples": (50, 200, 1000),
    "n_iterations_max": (10, 100, 1000),
    "num_repeats": (10, 100, 1000),
    "max_decays": (1, 5, 10, 15),
    "tol": (1e-1, 1e-3, 1e-6),
    "decay_factor": (0.1, 0.5, 0.99, 1.0),
    "clamp": (True, False),
    "patience": (1, 5, 10, 20),
}

FIRST_MOMENT, SECOND_MOMENT, EPSILON = 0.9, 0.999, 1e-8  # Adam's usual constants
RESAMPLED_POINTS = 1 << 14  # random points per path held in memory while looking for good starts


@dataclass(frozen=True, kw_only=True)
class FirstOrderConfig:
    """One first-order optimiser. Any sensible values are accepted; `GRID` has the paper's."""

    adam: bool
    init_lr: float
    resample_init: bool  # start from the best of num_repeats * num_samples random points
    num_samples: int
    n_iterations_max: int
    num_repeats: int  # only matters with resample_init
    max_decays: int
    tol: float
    decay_factor: float
    clamp: bool  # clip to the cube; otherwise points that leave it start anew at random
    patience: int

    def __post_init__(self) -> None:
        require_least(self, num_samples=1, n_iterations_max=1, num_repeats=1, max_decays=1)
        require_least(self, patience=1, tol=0)
        if not 0 < self.init_lr < math.inf:
            raise ConfigError(f"init_lr: must be > 0, not {self.init_lr}.")
        if not 0 < self.decay_factor <= 1:
            raise ConfigError(f"decay_factor: must be > 0 and <= 1, not {self.decay_factor}.")


def random_candidates(count: int, seed: int) -> tuple[FirstOrderConfig, ...]:
    """`count` different optimisers drawn uniformly from `GRID`.

    Two that differ only in a `num_repeats` that does not matter count as the same.
    """
    effective = math.prod(map(len, GRID.values())) * (1 + 1 / len(GRID["num_repeats"])) / 2
    if not 1 <= count <= effective:
        raise ConfigError(f"count: must be in 1..{effective:.0f}, the size of GRID, not {count}.")
    rng = np.random.Generator(np.random.Philox(key=int(derive_seeds(seed, count=1)[0])))
    found: dict[FirstOrderConfig, FirstOrderConfig] = {}
    while len(found) < count:
        values: dict[str, Any] = {k: v[rng.integers(len(v))] for k, v in GRID.items()}
        config = FirstOrderConfig(**values)
        same = config if config.resample_init else dataclasses.replace(config, num_repeats=1)
        found.setdefault(same, config)
    return tuple(found.values())


def maximise_by_gradient(
    paths: Paths, config: FirstOrderConfig, generator: torch.Generator
) -> Optimum:
    """Best point and value seen on each of the b paths, in the dtype of the paths.

    Warped paths are climbed in warped coordinates, as by `newton`.
    """
    if paths.warp is not None:
        found = maximise_by_gradient(paths.stationary, config, generator)
        return Optimum(unwarp(found.x[:, None], paths.warp).squeeze(1), found.f)
    group = batch_size(paths, config)
    parts = [_maximise(paths[i : i + group], config, generator) for i in range(0, paths.b, group)]
    return Optimum(torch.cat([p.x for p in parts]), torch.cat([p.f for p in parts]))


def batch_size(paths: Paths, config: FirstOrderConfig) -> int:
    """Number of paths that move together: their cosines at all samples stay in the cache."""
    return max(1, CHUNK // (config.num_samples * paths.phases.shape[1]))


@dataclass(frozen=True)
class _State:
    """Where the b unfinished paths are, each with s samples."""

    index: Tensor  # b, position in the batch that was asked for
    x: Tensor  # b x s x d
    momentum: Tensor  # b x s x d, running mean of the gradient
    square: Tensor  # b x s x d, running mean of its square
    age: Tensor  # b x s x 1, steps since the sample was initialised
    rate: Tensor  # b
    best_x: Tensor  # b x d
    best_f: Tensor  # b
    mark: Tensor  # b, best value when it last improved by tol
    stalled: Tensor  # b, steps since then
    decays: Tensor  # b

    @classmethod
    def start(cls, x: Tensor, rate: float) -> "_State":
        per_path, count = x.new_zeros(x.shape[0]), x.new_zeros(x.shape[0], dtype=torch.long)
        return cls(
            index=torch.arange(x.shape[0]),
            x=x,
            momentum=torch.zeros_like(x),
            square=torch.zeros_like(x),
            age=x.new_zeros(*x.shape[:2], 1),
            rate=per_path + rate,
            best_x=x[:, 0],
            best_f=per_path - torch.inf,
            mark=per_path - torch.inf,
            stalled=count,
            decays=count,
        )

    def __getitem__(self, keep: Tensor) -> "_State":
        return _State(*(tensor[keep] for tensor in vars(self).values()))

    def record(self, values: Tensor, config: FirstOrderConfig) -> "_State":
        """Take note of the values, `b x s`, at x: best so far, progress, rate."""
        f, winner = values.max(1)
        better = f > self.best_f
        best_f = torch.where(better, f, self.best_f)
        improved = best_f > self.mark + config.tol
        stalled = torch.where(improved, 0, self.stalled + 1)
        decay = stalled >= config.patience
        return dataclasses.replace(
            self,
            best_f=best_f,
            best_x=torch.where(better[:, None], self.x[torch.arange(len(f)), winner], self.best_x),
            mark=torch.where(improved, best_f, self.mark),
            stalled=torch.where(decay, 0, stalled),
            decays=self.decays + decay,
            rate=torch.where(decay, config.decay_factor * self.rate, self.rate),
        )

    def step(self, g: Tensor, config: FirstOrderConfig, generator: torch.Generator) -> "_State":
        """Move all samples along the gradients g, `b x s x d`, and back into the cube."""
        momentum, square, age = self.momentum, self.square, self.age
        if config.adam:
            momentum = torch.lerp(g, momentum, FIRST_MOMENT)
            square = torch.lerp(g.square(), square, SECOND_MOMENT)
            age = age + 1
            scale = (square / (1 - SECOND_MOMENT**age)).sqrt() + EPSILON
            g = momentum / (1 - FIRST_MOMENT**age) / scale
        x = self.x + self.rate[:, None, None] * g
        if config.clamp:
            x = x.clamp(0.0, 1.0)
        else:
            left = ((x < 0) | (x > 1)).any(-1)
            x[left] = torch.rand(int(left.sum()), x.shape[-1], generator=generator, dtype=x.dtype)
            if config.adam:  # a new sample has no history
                stays = ~left[..., None]
                momentum, square, age = momentum * stays, square * stays, age * stays
        return dataclasses.replace(self, x=x, momentum=momentum, square=square, age=age)


def _maximise(paths: Paths, config: FirstOrderConfig, generator: torch.Generator) -> Optimum:
    state = _State.start(_starts(paths, config, generator), config.init_lr)
    best_x, best_f = torch.empty_like(state.best_x), torch.empty_like(state.best_f)
    for iteration in range(config.n_iterations_max + 1):
        waves, slopes = paths.waves(state.x)
        state = state.record(paths.mean[:, None] + waves.sum(-1), config)
        finished = state.decays >= config.max_decays
        if iteration == config.n_iterations_max:
            finished = torch.ones_like(finished)
        gradient = slopes @ paths.frequencies
        if finished.any():
            best_x[state.index[finished]] = state.best_x[finished]
            best_f[state.index[finished]] = state.best_f[finished]
            if finished.all():
                break
            paths, state, gradient = paths[~finished], state[~finished], gradient[~finished]
        state = state.step(gradient, config, generator)
    return Optimum(best_x, best_f)


def _starts(paths: Paths, config: FirstOrderConfig, generator: torch.Generator) -> Tensor:
    """Starting points, `b x s x d`: uniform, or the best of `num_repeats` times as many."""

    def uniform(count: int) -> Tensor:
        return torch.rand(paths.b, count, paths.d, generator=generator, dtype=paths.dtype)

    s = config.num_samples
    if not config.resample_init:
        return uniform(s)
    x = paths.phases.new_empty(paths.b, 0, paths.d)
    f = paths.phases.new_empty(paths.b, 0)
    remaining = s * config.num_repeats
    while remaining:
        new = uniform(min(remaining, max(s, RESAMPLED_POINTS)))
        remaining -= new.shape[1]
        x, f = torch.cat([x, new], dim=1), torch.cat([f, paths(new)], dim=1)
        f, kept = f.topk(s, dim=1)
        x = x.gather(1, kept[..., None].expand(-1, -1, paths.d))
    return x
