"""The trained networks that come with amortes.

    network, card = load_pretrained()               # the default, kernel-real
    network, card = load_pretrained("kernel-paper")

Each is one safetensors file beside this module, written by `amortes export`; its card says how it
was trained and how good it is (`amortes info`).
"""

import functools
import importlib.resources
import os
from pathlib import Path
from typing import Any

from amortes.errors import ConfigError
from amortes.files import exists
from amortes.nets.base import Network
from amortes.training.export import Card, load_network

DEFAULT = "kernel-real"
SUFFIX = ".safetensors"
AnyNetwork = Network[Any] | str | os.PathLike[str]
"""A network, the name of one that comes with amortes, or a weights file."""


def names() -> list[str]:
    """Return the names of the networks that come with amortes, the default first."""
    files = [file.name for file in importlib.resources.files(__name__).iterdir()]
    found = [name.removesuffix(SUFFIX) for name in files if name.endswith(SUFFIX)]
    return sorted(found, key=lambda name: (name != DEFAULT, name))


def weights_path(name: str) -> Path:
    """The file with the weights of this name."""
    if name not in names():
        raise ConfigError(f"network: must be one of {', '.join(names())}, not {name!r}.")
    return Path(str(importlib.resources.files(__name__) / f"{name}{SUFFIX}"))


def load_pretrained(name: str = DEFAULT) -> tuple[Network[Any], Card]:
    """Load a network that comes with amortes. Returns the network and its card.

    The card says how the network was trained and how well it scores; `amortes info` prints it.
    Calls with the same name return the same network.
    """
    return _load(name)


def as_network(network: AnyNetwork | None, *, gains: bool = False) -> Network[Any]:
    """The network that is meant; without any, the default.

    With `gains`, a file without trained gains is a `ConfigError`.
    """
    if isinstance(network, Network):
        return network
    if network is None:
        return load_pretrained()[0]
    if not isinstance(network, str | os.PathLike):
        raise ConfigError(
            f"network: must be an amortes Network, a weights file or a name ({', '.join(names())}),"
            f" not a {type(network).__name__}. `load_pretrained` returns a pair: network and card."
        )
    if network in names():
        return load_pretrained(str(network))[0]
    if not exists(network):
        raise ConfigError(
            f"network: {os.fspath(network)!r} is neither a file nor the name of a network; choose "
            f"from {', '.join(names())}."
        )
    loaded, card = load_network(network)
    if gains and loaded.needs_alpha and "alpha" not in card.stages:
        raise ConfigError(
            f"network: {os.fspath(network)} has no trained gains. Train an alpha stage on it, or "
            f"use logei or ei."
        )
    return loaded


@functools.cache
def _load(name: str) -> tuple[Network[Any], Card]:
    return load_network(weights_path(name))
