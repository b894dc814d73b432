"""A run as JSON: everything the next suggestion depends on, except the network and a cost function.

The network is recorded by a fingerprint of its prior, configuration and weights.
"""

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from amortes.errors import ConfigError, FileError, about, shown
from amortes.files import read_json
from amortes.nets.base import Network
from amortes.optimiser.space import Space

FORMAT, VERSION = "amortes-optimizer", 1
SETTINGS = ("space", "goal", "acquisition", "seed", "initial")
FIELDS = (*SETTINGS, "network", "cost_function", "queue", "past", "trials")
# Settings are checked by what they are settings of.
TYPES = {"network": str, "cost_function": bool, "queue": list, "past": int, "trials": list}


def check_state(state: Any) -> dict[str, Any]:
    """The state if it is one this version can read, else a `FileError`."""
    if not isinstance(state, Mapping) or state.get("format") != FORMAT:
        raise FileError(f"not a saved run: expected a JSON object with format {FORMAT!r}.")
    if type(state.get("version")) is not int or state["version"] != VERSION:
        raise FileError(
            f"the saved run has version {state.get('version')!r}, but this amortes reads version "
            f"{VERSION}. Use the version of amortes that wrote it."
        )
    if missing := [field for field in FIELDS if field not in state]:
        raise FileError(f"the saved run is damaged: missing fields {', '.join(missing)}.")
    for field, kind in TYPES.items():
        if type(state[field]) is not kind:
            raise FileError(
                f"the saved run is damaged: {field} must be of type {kind.__name__}, "
                f"not {shown(state[field])}."
            )
    return dict(state)


def read_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The state in a file; errors name the file."""
    stored = read_json(path)
    with about(f"{path}:"):
        return check_state(stored)


def check_same(saved: Mapping[str, Any], own: Mapping[str, Any], path: object) -> None:
    """Raise `ConfigError` unless the states of two runs, one saved at `path`, have one setting."""
    for name in SETTINGS:
        if saved[name] != own[name]:
            raise ConfigError(
                f"{name}: the run in {path} has {shown(saved[name])}, not {shown(own[name])}. Pass "
                f"the same one to continue, or another file to start a new run."
            )


def check_space(description: Any, given: Space | Mapping[str, Any] | None) -> Space:
    """The space a state describes: the one given, if it is the same; else read from the state."""
    if given is None:
        return Space.from_dict(description)
    space = given if isinstance(given, Space) else Space(given)
    if space.to_dict() != description:
        raise ConfigError(
            f"space: the saved run has {shown(description)}, not {shown(space.to_dict())}. Pass "
            f"the same space."
        )
    return space


def fingerprint(network: Network[Any]) -> str:
    """16 hexadecimal digits that change with anything predictions depend on."""
    digest = hashlib.sha256(repr((network.prior, network.config)).encode())
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
