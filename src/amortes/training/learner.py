"""A learner: all that a training step changes, and the step itself.

A step is a function of the learner and a batch alone. What is random in it (which conditioning,
how many pending points) is drawn from (seed, step), so a learner restored from its tensors goes on
exactly where it was.

Beside the weights it keeps their exponential moving average, with the decay
min(average_decay, (1 + t) / (10 + t)) after t steps: a window of a tenth of the past, until that of
average_decay is reached. The average is what is validated and exported. (`AveragedModel` of
torch copies the weights after the first step and averages frozen ones too: this rule is shorter.)
"""

import copy
import statistics
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from amortes.errors import ConfigError, FileError
from amortes.nets.base import Network
from amortes.nets.kernel import KernelNetwork
from amortes.prior.tasks import TaskBatch
from amortes.random import generator
from amortes.training.distributed import place
from amortes.training.lessons import Lesson
from amortes.training.objectives import HINTS, Metrics, alpha_loss, base_loss, lesson_loss
from amortes.training.optimisers import learning_rate, make_optimisers
from amortes.training.recipes import Recipe

CHOICE_KEY = 0x5EED  # separates the choices of a step from the stream's own use of (seed, step)
SMOOTHING = 0.98


class Learner:
    """Network, moving average, optimisers and step number of one run."""

    def __init__(
        self,
        recipe: Recipe,
        network: Network[Any],
        device: torch.device,
        *,
        compiled: bool = False,
    ) -> None:
        if device.type != "cpu" and network.cpu_only:
            raise ConfigError(f"device: kernel networks run on the cpu only, not on {device}.")
        if compiled and recipe.taught:
            raise ConfigError("compile: torch cannot compile the alpha stage of kernel networks.")
        self.recipe, self.device, self.step = recipe, device, 0
        self.dtype: torch.dtype = getattr(torch, recipe.dtype)
        self.network = network.to(device).train()
        base = recipe.stage == "base"
        self.parameters: list[nn.Parameter] = list(
            network.base_parameters() if base else network.alpha_parameters()
        )
        network.requires_grad_(False)
        for parameter in self.parameters:
            parameter.requires_grad_(True)
        self.average = copy.deepcopy(network).requires_grad_(False).eval()
        averages = dict(self.average.named_parameters())
        self._averages = [
            (averages[name], p) for name, p in network.named_parameters() if p.requires_grad
        ]
        self.optimisers = make_optimisers(self.parameters, recipe)
        self._plain_loss: Any = base_loss
        if recipe.taught:
            self._plain_loss = lesson_loss
        elif not base:
            self._plain_loss = partial(alpha_loss, num_optima=recipe.num_optima)
        # One graph for all shapes, since dimension and context size change from batch to batch.
        self._loss = torch.compile(self._plain_loss, dynamic=True) if compiled else self._plain_loss

    def standardise(self, lesson: Lesson) -> None:
        """Standardise what a gain network reads."""
        for network in (self.network, self.average):
            assert isinstance(network, KernelNetwork)
            assert network.gain_network is not None
            network.gain_network.standardise(lesson.pairs.float(), lesson.queries.float())

    @property
    def learning_rate(self) -> float:
        """Learning rate of the coming step."""
        return learning_rate(self.recipe, self.step)

    def forward(self, task: TaskBatch | Lesson) -> tuple[Tensor, Metrics]:
        """Loss of the current weights on a batch, with the choices of the current step."""
        task = place(task, self.device, self.dtype)
        if isinstance(task, Lesson):
            return self._evaluate(self._loss, self.network, task, {})
        rng = generator(self.recipe.seed, self.step, CHOICE_KEY)
        hide, amount, which = torch.rand(3, generator=rng, dtype=torch.float32).tolist()
        options: dict[str, Any] = {}
        most = min(self.recipe.max_pending, task.X.shape[1] - 1)
        if hide < self.recipe.pending_share and most:
            options["num_pending"] = 1 + int(amount * most)
        if self.recipe.stage == "base" and self.recipe.conditionings == "one":
            options["hints"] = (HINTS[int(which * len(HINTS))],)
        return self._evaluate(self._loss, self.network, task, options)

    @torch.no_grad()
    def validate(self, task: TaskBatch | Lesson) -> Metrics:
        """Metrics of the averaged weights on a batch: all conditionings, nothing pending."""
        task = place(task, self.device, self.dtype)
        return self._evaluate(self._plain_loss, self.average, task, {})[1]

    def _evaluate(
        self, loss: Any, network: Network[Any], task: TaskBatch | Lesson, options: dict[str, Any]
    ) -> tuple[Tensor, Metrics]:
        with torch.autocast("cuda", torch.bfloat16, enabled=self.device.type == "cuda"):
            result: tuple[Tensor, Metrics] = loss(network, task, **options)
        return result

    def clip(self) -> Tensor:
        """Limit the norm of the gradient; returns what it was."""
        return nn.utils.clip_grad_norm_(self.parameters, self.recipe.clip)

    def update(self) -> None:
        """Move the weights along the gradient, clear it, and move the average."""
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = self.learning_rate
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        decay = min(self.recipe.average_decay, (1 + self.step) / (10 + self.step))
        for average, parameter in self._averages:
            average.lerp_(parameter.detach(), 1.0 - decay)
        self.step += 1

    def tensors(self) -> dict[str, Tensor]:
        """Everything but the step number, flat; `load` inverts it."""
        flat = {f"network.{name}": t for name, t in self.network.state_dict().items()}
        flat |= {f"average.{name}": t for name, t in self.average.state_dict().items()}
        for i, optimiser in enumerate(self.optimisers):
            for j, entries in optimiser.state_dict()["state"].items():
                flat |= {f"optimiser.{i}.{j}.{name}": t for name, t in entries.items()}
        return flat

    def load(self, tensors: Mapping[str, Tensor], step: int) -> None:
        """Become the learner whose `tensors` these are, after `step` steps."""
        networks = {"network": self.network, "average": self.average}
        states: dict[int, dict[int, dict[str, Tensor]]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimiser."):
                _, which, index, entry = name.split(".")
                states.setdefault(int(which), {}).setdefault(int(index), {})[entry] = tensor
        try:
            for prefix, network in networks.items():
                network.load_state_dict(part(tensors, prefix))
            for i, optimiser in enumerate(self.optimisers):
                groups = optimiser.state_dict()["param_groups"]
                optimiser.load_state_dict({"state": states.get(i, {}), "param_groups": groups})
                for parameter, entries in optimiser.state.items():  # torch does not look
                    if any(t.ndim and t.shape != parameter.shape for t in entries.values()):
                        raise ValueError(f"optimiser {i} is that of other parameters.")
        except (RuntimeError, ValueError) as error:
            raise FileError(f"the saved state does not fit the recipe: {error}") from error
        self.step = step


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with `prefix.`, without it."""
    start = f"{prefix}."
    return {name[len(start) :]: t for name, t in tensors.items() if name.startswith(start)}


class Meter:
    """Collects the metrics of steps; empty again after each `flush`."""

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = defaultdict(list)
        self._loss = self._seconds = self._weight = 0.0

    def add(self, metrics: Mapping[str, float], seconds: float) -> None:
        """Take in the metrics and the duration of one step."""
        for name, value in metrics.items():
            self._taken[name].append(value)
        fresh = 1.0 - SMOOTHING
        self._loss = SMOOTHING * self._loss + fresh * metrics["loss"]
        self._seconds = SMOOTHING * self._seconds + fresh * seconds
        self._weight = SMOOTHING * self._weight + fresh

    @property
    def loss(self) -> float:
        """Smoothed loss."""
        return self._loss / self._weight

    @property
    def seconds(self) -> float:
        """Smoothed duration of a step."""
        return self._seconds / self._weight

    def flush(self) -> dict[str, float]:
        """Means since the last flush, each over the steps that had this metric."""
        means = {name: statistics.fmean(values) for name, values in self._taken.items()}
        self._taken.clear()
        return means
