"""The trained networks that come with amortes.

    network, card = load_pretrained()               # the default, kernel-robust
    network, card = load_pretrained("kernel-paper")

Each is one safetensors file beside this module, written by `amortes export`; its card says how it
was trained and how good it is (`amortes info`).
"""

import functools
import importlib.resources
from pathlib import Path
from typing import Any

from amortes.errors import ConfigError
from amortes.nets.base import Network
from amortes.training.export import Card, load_network

DEFAULT = "kernel-robust"
SUFFIX = ".safetensors"


def names() -> list[str]:
    """Names of the networks that come with amortes, the default first."""
    files = [file.name for file in importlib.resources.files(__name__).iterdir()]
    found = [name.removesuffix(SUFFIX) for name in files if name.endswith(SUFFIX)]
    return sorted(found, key=lambda name: (name != DEFAULT, name))


def weights_path(name: str) -> Path:
    """The file with the weights of this name."""
    if name not in names():
        raise ConfigError(f"network: must be one of {', '.join(names())}, not {name!r}.")
    return Path(str(importlib.resources.files(__name__) / f"{name}{SUFFIX}"))


@functools.cache
def load_pretrained(name: str = DEFAULT) -> tuple[Network[Any], Card]:
    """The network of this name, shared by all who ask for it, and its card."""
    return load_network(weights_path(name))
