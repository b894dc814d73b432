"""The network an optimiser uses when it is given none."""

from typing import Any

from amortes.errors import FileError
from amortes.nets.base import Network


def default_network() -> Network[Any]:
    """The network whose weights come with amortes."""
    raise FileError(
        "no trained weights come with this version of amortes; pass a network, for instance "
        "`network=load_network(path)[0]` from amortes.training.export."
    )
