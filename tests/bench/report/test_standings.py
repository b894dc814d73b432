import math

import numpy as np
import pytest

from amortes.bench.report.curves import Curve, Curves
from amortes.bench.report.published import Published
from amortes.bench.report.standings import standings


def curve(mean: float, error: float, last: int = 3) -> Curve:
    steps = np.arange(1, last + 1)
    return Curve(
        iteration=steps,
        mean=np.full(last, mean),
        error=np.full(last, error),
        count=np.full(last, 5.0),
    )


def test_verdicts() -> None:
    curves: Curves = {
        "branin": {"jes": curve(-1.0, 0.3), "fb-jes": curve(-0.9, 0.4), "random": curve(0.0, 0.1)},
        "lcbench-car": {"jes": curve(80.0, 0.3), "map-jes": curve(82.0, 0.4)},
    }
    published = Published(
        curves={"branin": {"paper:jes": curve(1.0, 0.4, last=2), "paper:jes@uniform": curve(9, 1)}}
    )
    found = {(one.problem, one.theirs): one for one in standings(curves, published)}
    assert set(found) == {
        ("branin", "fb-jes"),
        ("branin", "paper:jes"),
        ("lcbench-car", "map-jes"),
    }
    level = found["branin", "fb-jes"]
    assert level.difference == pytest.approx(0.1)  # lower regret is better
    assert level.z == pytest.approx(0.1 / math.hypot(0.3, 0.4))
    assert level.verdict == "level"
    assert found["branin", "paper:jes"].verdict == "better"
    assert found["branin", "paper:jes"].iteration == 2
    worse = found["lcbench-car", "map-jes"]
    assert worse.z == pytest.approx(-4.0)  # higher accuracy is better
    assert worse.verdict == "worse"


def test_a_single_seed_has_no_verdict() -> None:
    curves: Curves = {"branin": {"jes": curve(0.0, math.nan), "fb-jes": curve(1.0, 0.1)}}
    (one,) = standings(curves, Published())
    assert one.verdict == "unknown"
