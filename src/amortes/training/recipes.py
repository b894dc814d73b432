"""Recipes: everything that decides what a run learns, in one frozen object.

Two runs of one recipe give the same weights, bit for bit, on the same machine with the same number
of threads. A named recipe, for a stage and a prior:

    recipe("kernel", "base", named_prior("real"), ["lr=1e-3", "tasks.batch_size=32"])

`paper` is the training of Rakotoarison et al. (ICML 2026), "α-PFN: Fast Entropy Search via
In-Context Learning", but for two things all recipes share (see `amortes.training.objectives`):
targets are Rao-Blackwellised, and queries placed around x* count only where x* is known.
"""

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

import torch

from amortes.errors import ConfigError, require_least
from amortes.nets.base import Network
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.nets.kernel.gains.gain_network import GainConfig
from amortes.nets.kernel.network import DRAWN_PARTICLES
from amortes.nets.transformer import Transformer, TransformerConfig
from amortes.prior.gp import GPPrior
from amortes.prior.tasks import TaskConfig
from amortes.training import settings

ARCHITECTURES: dict[str, tuple[type[Any], type[Any]]] = {
    "kernel": (KernelConfig, KernelNetwork),
    "transformer": (TransformerConfig, Transformer),
}
"""The configuration and the network of each kind."""
Stage = Literal["base", "alpha"]
STAGES: tuple[Stage, ...] = ("base", "alpha")
MAX_SEED = 2**32 - 2  # the next one is that of the validation tasks
EVALUATION_SEED = 7_426_917  # of the tasks that `amortes evaluate` scores networks on


def architecture(kind: str) -> tuple[type[Any], type[Any]]:
    """The frozen dataclass that configures networks of this kind, and their class."""
    if kind not in ARCHITECTURES:
        raise ConfigError(
            f"network: no architecture {kind!r}; there are {', '.join(ARCHITECTURES)}."
        )
    return ARCHITECTURES[kind]


def needs_alpha(kind: str) -> bool:
    """Whether networks of this kind know no gains without an alpha stage."""
    needed: bool = architecture(kind)[1].needs_alpha
    return needed


def read_config(kind: str, values: Any) -> Any:
    """The configuration of a network of this kind, from the JSON values in a file."""
    return settings.from_dict(architecture(kind)[0], values, "config")


def build_network(kind: str, config: Any, prior: GPPrior, seed: int = 0) -> Network[Any]:
    """A new network with initial weights; the same arguments give the same weights."""
    # Layers of torch draw their initial weights from the global generator: lend them that one.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        network: Network[Any] = architecture(kind)[1](config, prior)
    return network


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What to train, on what, and how."""

    name: str
    stage: Stage
    network: str  # kind, a key of `ARCHITECTURES`
    config: Any  # configuration of that kind of network
    prior: GPPrior
    tasks: TaskConfig
    steps: int
    seed: int = 0
    # The base stage learns all four conditionings on every batch, or one of them at random.
    conditionings: Literal["all", "one"] = "all"
    # Share of the batches in which the last few observations lose their value.
    pending_share: float = 0.0
    max_pending: int = 4
    # Optima of each dataset whose gains the alpha stage learns: the true one, or so many draws.
    num_optima: int = 1
    # What the alpha stage of a kernel network learns from: see `training.lessons`.
    lessons: int = 0
    optimiser: Literal["adamw", "muon"] = "adamw"
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient
    warmup_share: float = 0.01
    average_decay: float = 0.999  # of the moving average of the weights
    # Type of the numbers handed to the network; what it computes with inside is its own affair.
    dtype: Literal["float32", "float64"] = "float32"
    log_every: int = 10
    save_every: int = 200
    validate_every: int = 500
    validation_batches: int = 8

    def __post_init__(self) -> None:
        require_least(
            self, steps=1, max_pending=1, num_optima=1, log_every=1, save_every=1, validate_every=1
        )
        require_least(self, validation_batches=1)
        for field in ("lr", "clip"):
            self._check(field, 0 < getattr(self, field) < math.inf, "positive")
        for field in ("pending_share", "warmup_share"):
            self._check(field, 0 <= getattr(self, field) <= 1, "in [0, 1]")
        self._check("average_decay", 0 <= self.average_decay < 1, "in [0, 1)")
        self._check("betas", all(0 <= beta < 1 for beta in self.betas), "in [0, 1)")
        self._check("weight_decay", 0 <= self.weight_decay < math.inf, "at least 0")
        self._check("seed", 0 <= self.seed <= MAX_SEED, f"in 0..{MAX_SEED}")
        self._check("seed", self.seed != EVALUATION_SEED, "another one than that of evaluations")
        self._check("stage", self.stage in STAGES, " or ".join(STAGES))
        config, _ = architecture(self.network)
        if not isinstance(self.config, config):
            raise ConfigError(
                f"config: a {self.network} network takes a {config.__name__}, "
                f"not a {type(self.config).__name__}."
            )
        if self.taught:
            require_least(self, lessons=1)
            if self.config.gains is None:
                raise ConfigError("config.gains: an alpha stage needs a gain network.")
            if self.config.particles.count < DRAWN_PARTICLES:
                raise ConfigError(
                    f"config.particles.count: an alpha stage needs {DRAWN_PARTICLES} or more, not "
                    f"{self.config.particles.count}."
                )

    @property
    def taught(self) -> bool:
        """Whether gains are learned from `lessons`, as those of kernel networks are."""
        return self.stage == "alpha" and self.network == "kernel"

    def _check(self, field: str, valid: bool, expected: str) -> None:
        if not valid:
            raise ConfigError(f"{field}: must be {expected}, not {getattr(self, field)}.")

    def to_dict(self) -> dict[str, Any]:
        """JSON values of all fields; `from_dict` inverts it."""
        return settings.to_dict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Rebuild a recipe; a `ConfigError` names the field that is wrong."""
        if not isinstance(values, dict) or "network" not in values:
            raise ConfigError(f"not a recipe: {values!r}.")
        config = read_config(values["network"], values.get("config"))
        return settings.from_dict(cls, {**values, "config": config})


RECIPES: dict[str, dict[str, Any]] = {
    # Section 5 of the paper: 100 million datasets; made for a GPU.
    "paper": {
        "network": "transformer",
        "tasks": TaskConfig(batch_size=100, num_queries=100, min_context=1, max_context=49),
        "steps": 1_000_000,
        "conditionings": "one",
        "lr": 1e-4,
        "save_every": 1000,
        "validate_every": 5000,
    },
    # The paper's architecture at a size that learns on a CPU.
    "transformer": {
        "network": "transformer",
        "config": {"width": 64, "layers": 6, "hidden": 256, "waves": 12}
        | {"bars": 1000, "gain_bars": 200},
        "tasks": TaskConfig(batch_size=32, num_queries=64),
        "steps": 20_000,
        # With a hint the whole context is encoded again: more datasets are worth more than more
        # conditionings of the same ones.
        "conditionings": "one",
        "pending_share": 0.1,
        # With a tenth of this, predictions ignore the points for hundreds of steps (docs/log.md).
        "optimiser": "muon",
        "lr": 1e-2,
    },
    # The kernel network, whose base stage learns to infer hyperparameters: hours on one core.
    "kernel": {
        "network": "kernel",
        "tasks": TaskConfig(
            batch_size=32, num_queries=0, max_context=120, context_skew=2.0, dim_decay=0.5
        ),
        "steps": 20_000,
        "validation_batches": 32,
    },
}
"""Fields of recipes by name; `config` has settings of the network."""

OF_ALPHA: dict[str, dict[str, Any]] = {
    # Two seconds for a lesson, a tenth of one for a step: an hour on one core.
    "kernel": {
        "tasks": TaskConfig(
            batch_size=8,
            num_queries=0,
            min_context=2,
            max_context=150,
            context_skew=1.5,
            dim_decay=0.3,
        ),
        "lessons": 1000,
        "steps": 12_000,
        "lr": 3e-3,
        "weight_decay": 1e-3,
        "validation_batches": 16,
    },
}
"""Fields that differ in the alpha stage."""


def recipe(
    name: str, stage: Stage, prior: GPPrior, overrides: Iterable[str] = (), **fields: Any
) -> Recipe:
    """A named recipe with some `fields` replaced and then `overrides` such as `lr=1e-3` applied."""
    if name not in RECIPES:
        raise ConfigError(f"recipe: no recipe {name!r}; there are {', '.join(RECIPES)}.")
    overrides = list(overrides)
    if any(o.startswith("prior.") for o in overrides):
        overrides.append("prior.name=custom")  # it is no longer the prior of that name
    known: dict[str, Any] = {"name": name, "stage": stage, "prior": prior} | RECIPES[name]
    known["config"] = architecture(known["network"])[0](**known.get("config", {}))
    if stage == "alpha":
        known |= OF_ALPHA.get(name, {})
    known |= fields
    config = known["config"]
    if isinstance(config, KernelConfig):  # a gain network that nobody trains would be used
        gains = (config.gains or GainConfig()) if stage == "alpha" else None
        known["config"] = dataclasses.replace(config, gains=gains)
    return settings.override(Recipe(**known), overrides)
