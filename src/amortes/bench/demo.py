"""A race on noisy Hartmann-6: entropy search, LogEI and random search, with the same luck.

All methods begin with the same points, and the noise of the i-th evaluation is the same for all.
What counts is the inference regret: the maximum of the function less its value, without noise, at
the point that is recommended (the maximiser of the posterior mean; also for random search).

    Hartmann-6    f(x) = -sum_i a_i exp(-sum_j A_ij (x_j - P_ij)^2) on the unit cube,

minimum -3.32237; the same as BoTorch's (Dixon & Szegö, Towards Global Optimization 2, 1978).
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from amortes.colours import BLUE, GREY, ORANGE
from amortes.nets.base import Network
from amortes.optimiser import Float, Optimizer
from amortes.random import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

D = 6
NOISE_SD = 0.316
BEST = 3.32237
"""The maximum of -f."""
RANDOM = "random search"
METHODS = {"jes": "JES", "logei": "LogEI", RANDOM: "random search"}
COLOURS = {"jes": BLUE, "logei": ORANGE, RANDOM: GREY}

_HEIGHT = torch.tensor([1.0, 1.2, 3.0, 3.2], dtype=torch.float64)
_SCALE = torch.tensor(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ],
    dtype=torch.float64,
)
_PLACE = torch.tensor(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ],
    dtype=torch.float64,
)


def hartmann6(X: Tensor) -> Tensor:
    """-f, to be maximised, at X, `m x 6`: `m`."""
    distance = (_SCALE * (X[:, None] - _PLACE).square()).sum(-1)  # m x 4
    return (-distance).exp() @ _HEIGHT


@dataclass
class Runner:
    """One method on its way: regrets after `first`, `first` + 1, ... evaluations."""

    method: str
    optimizer: Optimizer
    seed: int
    first: int = D + 1
    regrets: list[float] = field(default_factory=list)
    seconds: float = 0.0  # of choosing and recommending

    @property
    def evaluations(self) -> int:
        """How many there were."""
        return len(self.optimizer.trials)

    def step(self) -> None:
        """Evaluate one more point, and recommend one."""
        i, begin = self.evaluations, time.perf_counter()
        if self.method == RANDOM and i >= self.first:
            u = torch.rand(D, generator=generator(self.seed, i, 1), dtype=torch.float64)
            config = self.optimizer.space.decode(u)
        else:
            config = self.optimizer.ask().config
        noise = torch.randn((), generator=generator(self.seed, i), dtype=torch.float64)
        value = hartmann6(self._point(config)) + NOISE_SD * noise
        self.optimizer.tell(config, float(value))
        if self.evaluations >= self.first:
            recommended = self.optimizer.recommend().config
            self.regrets.append(BEST - float(hartmann6(self._point(recommended))))
        self.seconds += time.perf_counter() - begin

    def _point(self, config: dict[str, Any]) -> Tensor:
        return self.optimizer.space.encode(config)[None]


def race(
    evaluations: int, *, seed: int, network: Network[Any] | None = None
) -> Iterator[list[Runner]]:
    """Let all methods take one step after the other; yields them after every step."""
    space = {f"x{i}": Float(0.0, 1.0) for i in range(1, D + 1)}
    runners = []
    for method in METHODS:
        acquisition = "logei" if method == RANDOM else method
        optimizer = Optimizer(
            space, "maximize", acquisition=acquisition, seed=seed, initial=D + 1, network=network
        )
        runners.append(Runner(method, optimizer, seed))
    for _ in range(evaluations):
        for runner in runners:
            runner.step()
            yield runners


def draw_regrets(races: list[list[Runner]]) -> "Figure":
    """Inference regret against evaluations: each run thin, the geometric means thick."""
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    ax = figure.subplots()
    for runners in zip(*races, strict=True):
        method, first = runners[0].method, runners[0].first
        log_regrets = torch.tensor([runner.regrets for runner in runners]).clamp_min(1e-9).log()
        x = range(first, first + log_regrets.shape[1])
        for row in log_regrets.exp():
            ax.plot(x, row.tolist(), color=COLOURS[method], lw=0.7, alpha=0.4)
        mean = log_regrets.mean(0).exp().tolist()
        ax.plot(x, mean, color=COLOURS[method], lw=2.2, label=METHODS[method])
    ax.set_yscale("log")
    ax.set_xlabel(f"evaluations (the first {D + 1} are the same for all)")
    ax.set_ylabel("inference regret")
    ax.set_title(f"Hartmann-6, noise of standard deviation {NOISE_SD}, {len(races)} seeds")
    ax.legend(frameon=False)
    return figure
