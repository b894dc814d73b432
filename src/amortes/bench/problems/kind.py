"""What a module of problems says about them: how to make, to run and to report them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from amortes.bench.protocol import Problem


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Problems of one family that are made, run and reported alike."""

    family: str
    names: tuple[str, ...]
    make: Callable[[str], Problem]
    iterations: int = 100  # observations of a run, unless a sweep says otherwise
    seeds: tuple[int, ...] = tuple(range(10))
    real: tuple[str, ...] = ()
    """Those in the suite `real`: some that users would know, so that no family decides and a seed
    of a method takes minutes; no accuracies that many configurations share, no large pools."""
    group: str = "other"  # what they are shown with in reports, a key of `report.names.GROUPS`
    panel: Callable[[str], str] = lambda name: name  # those with the same are averaged
    labels: Mapping[str, str] = field(default_factory=dict)
    """Titles of panels, in the order of the report; others have their names."""
