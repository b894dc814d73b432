"""Which networks there are: their names, configurations and classes, imported when needed."""

import importlib
from typing import Any

import torch

from amortes.errors import ConfigError
from amortes.nets.base import Network
from amortes.prior.gp import GPPrior
from amortes.training import settings

# Kind -> (module, configuration class, network class).
ARCHITECTURES = {
    "kernel": ("amortes.nets.kernel", "KernelConfig", "KernelNetwork"),
    "transformer": ("amortes.nets.transformer", "TransformerConfig", "Transformer"),
}


def config_class(kind: str) -> type[Any]:
    """The frozen dataclass that configures networks of this kind."""
    cls: type[Any] = _attribute(kind, 1)
    return cls


def learns_gains(kind: str) -> bool:
    """Whether networks of this kind learn gains, in an alpha stage, or compute them."""
    learned: bool = _attribute(kind, 2).learned_gains
    return learned


def read_config(kind: str, values: Any) -> Any:
    """The configuration of a network of this kind, from the JSON values in a file."""
    return settings.from_dict(config_class(kind), values, "config")


def build_network(kind: str, config: Any, prior: GPPrior, seed: int = 0) -> Network[Any]:
    """A new network with initial weights; the same arguments give the same weights."""
    # Layers of torch draw their initial weights from the global generator: lend them that one.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        network = _attribute(kind, 2)(config, prior)
    assert isinstance(network, Network)
    return network


def _attribute(kind: str, index: int) -> Any:
    if kind not in ARCHITECTURES:
        raise ConfigError(
            f"network: no architecture {kind!r}; there are {', '.join(ARCHITECTURES)}."
        )
    return getattr(importlib.import_module(ARCHITECTURES[kind][0]), ARCHITECTURES[kind][index])
