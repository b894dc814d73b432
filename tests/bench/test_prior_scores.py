import math
from typing import Any

import pytest
import scipy.stats
import torch

from amortes.bench.prior_scores import Score, _by_family, _differences, score_networks, score_trace
from amortes.bench.traces import Trace
from amortes.errors import ConfigError
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.prior.gp import named_prior


def network(name: str) -> KernelNetwork:
    return KernelNetwork(KernelConfig(encoder=None), named_prior(name)).eval()


def trace(problem: str = "p", family: str = "f", n: int = 14, scale: float = 50.0) -> Trace:
    X = torch.rand(n, 1, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    y = scale * (9.0 * X[:, 0]).sin()
    return Trace(problem=problem, family=family, method="m", seed=0, noise_sd=0.0, X=X, y=y)


def test_scores_are_those_of_the_textbook() -> None:
    """Prior paper-1d has known hyperparameters: one Gaussian process on standardised y."""
    given = trace()
    [score] = score_trace(network("paper-1d"), given, [12], plain=True)
    told, scale = given.y[:12], float(given.y[:12].std())
    z = ((given.y - told.mean()) / scale).numpy()
    K = 10.0 * torch.exp(-0.5 * (torch.cdist(given.X, given.X) / 0.05).square()).numpy()
    noisy = K + 0.01 * torch.eye(14).numpy()
    joint = scipy.stats.multivariate_normal(cov=noisy[:12, :12]).logpdf(z[:12])
    # An estimate by importance sampling, of which 0.02 nats are the error here.
    assert score.evidence == pytest.approx(joint / 12 - math.log(scale), abs=3e-3)
    densities = []
    for i in (12, 13):
        both = [*range(12), i]
        after = scipy.stats.multivariate_normal(cov=noisy[both][:, both]).logpdf(z[both])
        densities.append(after - joint - math.log(scale))
    assert score.next == pytest.approx(sum(densities) / 2, abs=1e-6)
    better = [value for value, y in zip(densities, given.y[12:], strict=True) if y > told.median()]
    assert 0 < len(better) <= 2
    assert score.better == pytest.approx(sum(better) / len(better), abs=1e-6)


def test_nothing_to_predict_is_no_score() -> None:
    given = trace()
    assert [score.n for score in score_trace(network("robust"), given, [5, 14, 20])] == [5]
    flat = Trace(**{**vars(given), "y": torch.ones(14, dtype=torch.float64)})
    assert score_trace(network("robust"), flat, [5]) == []


def test_units_do_not_matter_to_differences() -> None:
    networks: dict[str, Any] = {"a": network("robust"), "b": network("paper")}
    small = score_networks(networks, [trace(scale=1e-3)], [10])
    large = score_networks(networks, [trace(scale=1e6)], [10])
    assert [d.mean for d in small] == pytest.approx([d.mean for d in large], abs=1e-6)
    assert {(d.network, d.families, d.n, d.problems) for d in small} == {
        ("b", "f", 10, 1),
        ("b", "all", 10, 1),
    }
    with pytest.raises(ConfigError, match="a baseline and one"):
        score_networks({"a": network("robust")}, [], [10])


def test_each_family_counts_the_same_and_is_left_out_in_turn() -> None:
    differences = {"f": {"a": 1.0, "b": 3.0}, "g": {"c": -1.0, "d": -2.0, "e": -3.0}}
    rows = {row.families: row for row in _by_family("n", "next", 10, differences)}
    assert list(rows) == ["f", "g", "all", "without f", "without g"]
    assert [row.mean for row in rows.values()] == [2.0, -2.0, 0.0, -2.0, 2.0]
    assert [row.ahead for row in rows.values()] == [1.0, 0.0, 0.4, 0.0, 1.0]
    assert rows["f"].error == pytest.approx(1.0)
    assert rows["g"].error == pytest.approx(1 / math.sqrt(3))
    assert rows["all"].error == pytest.approx(math.sqrt(1 + 1 / 3) / 2)
    assert list(_by_family("n", "next", 10, {})) == []


def test_traces_of_a_problem_are_averaged_and_missing_scores_left_out() -> None:
    given = [trace("a"), trace("a"), trace("b"), trace("c")]
    ours = [[Score(10, 1.0, 0, 0)], [Score(10, 3.0, 0, 0)], [Score(10, math.nan, 0, 0)], []]
    theirs = [[Score(10, 0.0, 0, 0)], [Score(10, 0.0, 0, 0)], [Score(10, 0.0, 0, 0)], []]
    assert _differences(given, ours, theirs, "evidence", 10) == {"f": {"a": 2.0}}
