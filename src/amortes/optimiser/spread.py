"""How much results differ, against which an expected gain is large or small."""

import math
import statistics
from collections.abc import Sequence

FAR = 20.0
"""Results are left out that are worse than the best three quarters by more than this many times
what these span, as in plots: one penalty of 1e30 would make every gain look small."""


def spread(values: Sequence[float], *, maximise: bool) -> float:
    """The standard deviation of results, without those that are worse than all others by far."""
    badness = sorted(-value if maximise else value for value in values)
    usual = badness[3 * (len(badness) - 1) // 4]
    reach = usual + FAR * (usual - badness[0]) if usual > badness[0] else math.inf
    return statistics.pstdev(value for value in badness if value <= reach)
