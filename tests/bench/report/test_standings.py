import math

import numpy as np
import pytest
from scipy import stats

from amortes.bench.report.curves import Curve, Curves
from amortes.bench.report.published import Published, load_published
from amortes.bench.report.standings import standings


def curve(mean: float, error: float, last: int = 3, seeds: float = 5.0) -> Curve:
    steps = np.arange(1, last + 1)
    return Curve(
        iteration=steps,
        mean=np.full(last, mean),
        error=np.full(last, error),
        count=np.full(last, seeds),
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
    assert level.t == pytest.approx(0.1 / math.hypot(0.3, 0.4))
    assert level.verdict == "level"
    assert found["branin", "paper:jes"].verdict == "better"
    assert found["branin", "paper:jes"].iteration == 2
    worse = found["lcbench-car", "map-jes"]
    assert worse.t == pytest.approx(-4.0)  # higher accuracy is better
    assert worse.verdict == "worse"


@pytest.mark.parametrize(("seeds", "verdict"), [(3.0, "level"), (10.0, "worse")])
def test_few_seeds_need_a_larger_difference(seeds: float, verdict: str) -> None:
    ours, theirs = curve(0.0, 0.1, seeds=seeds), curve(-0.35, 0.1, seeds=seeds)
    (one,) = standings({"branin": {"jes": ours, "fb-jes": theirs}}, Published())
    assert one.t == pytest.approx(-0.35 / math.hypot(0.1, 0.1))  # 2.5 standard errors
    assert one.verdict == verdict


def test_published_curves_have_thirty_seeds() -> None:
    published = load_published()
    theirs = published.curves["branin"]["paper:jes"]
    ours = curve(float(theirs.mean[2]) + 0.2, 0.05, seeds=30.0)
    found = {one.theirs: one for one in standings({"branin": {"jes": ours}}, published)}
    one = found["paper:jes"]
    expected = stats.ttest_ind_from_stats(
        *(one.our_mean, one.our_error * math.sqrt(30), 30),
        *(one.their_mean, one.their_error * math.sqrt(30), 30),
        equal_var=False,
    )
    assert one.t == pytest.approx(-expected.statistic)
    assert one.verdict == ("worse" if expected.pvalue < 0.05 else "level")
    assert one.clear < 2.1


def test_a_single_seed_has_no_verdict() -> None:
    curves: Curves = {"branin": {"jes": curve(0.0, math.nan), "fb-jes": curve(1.0, 0.1)}}
    (one,) = standings(curves, Published())
    assert one.verdict == "unknown"
