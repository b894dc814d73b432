import math

import pytest
import torch
from torch import Tensor

from amortes.acquisition import Fitted, evaluate, maximise_pool
from amortes.acquisition.domain import CHUNK, SAME
from amortes.acquisition.pool import EACH, MANY, RANDOM, shortlist
from amortes.acquisition.search import OPTIMISM
from amortes.errors import DataError
from amortes.nets.kernel import KernelNetwork
from amortes.random import generator
from tests.acquisition.conftest import data

POOL = torch.rand(3 * CHUNK + 7, 2, generator=generator(0), dtype=torch.float64)
CUBE = torch.rand(3 * MANY, 3, generator=generator(1), dtype=torch.float64)


def hill(X: Tensor) -> Tensor:
    return -(X - 0.5).square().sum(-1)


def test_the_best_of_all_in_chunks() -> None:
    largest = []

    def score(X: Tensor) -> Tensor:
        largest.append(len(X))
        assert not torch.is_grad_enabled()
        return hill(X)

    found = maximise_pool(score, POOL)
    values = hill(POOL)
    assert found.index == int(values.argmax())
    assert found.value == float(values.max())
    assert torch.equal(found.x, POOL[found.index])
    assert found.fresh
    assert max(largest) == CHUNK
    assert sum(largest) == len(POOL)


def test_points_to_exclude_until_there_are_no_others() -> None:
    pool = POOL[:5]
    order = hill(pool).argsort(descending=True).tolist()
    taken = pool[order[:2]]
    found = maximise_pool(hill, pool, exclude=taken + 0.5 * SAME)
    assert (found.index, found.fresh) == (order[2], True)
    again = maximise_pool(hill, pool, exclude=pool)
    assert (again.index, again.fresh) == (order[0], False)


def test_scores_that_are_not_numbers_lose() -> None:
    def broken(X: Tensor) -> Tensor:
        return torch.where(X[:, 0] < 0.9, torch.nan, hill(X))

    assert maximise_pool(broken, POOL).x[0] >= 0.9
    assert evaluate(broken, POOL).isneginf().any()
    with pytest.raises(DataError, match="NaN"):
        maximise_pool(lambda X: X[:, 0] * torch.nan, POOL)


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (POOL[:0], "empty"),
        (POOL[0], "float64 matrix"),
        (POOL.float(), "torch.float32"),
        (POOL / 0.0, "NaN or infinity"),
    ],
)
def test_bad_pools(pool: Tensor, message: str) -> None:
    with pytest.raises(DataError, match=message):
        maximise_pool(hill, pool)


@pytest.mark.parametrize("name", ["jes", "mes", "logei", "mean"])
def test_the_best_of_a_large_pool(network: KernelNetwork, name: str) -> None:
    fitted = Fitted(network, *data(3, 15))
    scored = []

    def score(X: Tensor) -> Tensor:
        scored.append(len(X))
        return fitted.score(name, X)

    found = maximise_pool(score, CUBE, rough=fitted.rough_moments)
    count = sum(scored)
    everything = evaluate(score, CUBE)
    assert count < len(CUBE) / 3
    missed = float(everything.max()) - found.value
    assert missed <= 0.01 * float(everything.max() - everything.median())
    assert found.value == pytest.approx(float(everything[found.index]), rel=1e-6)


def test_small_pools_are_scored_in_full(network: KernelNetwork) -> None:
    fitted = Fitted(network, *data(3, 8))
    pool = CUBE[:MANY]
    found = maximise_pool(lambda X: fitted.score("ucb", X), pool, rough=fitted.rough_moments)
    assert found.index == int(evaluate(lambda X: fitted.score("ucb", X), pool).argmax())
    scored = []

    def score(X: Tensor) -> Tensor:
        scored.append(len(X))
        return X[:, 0]

    # Nor is anything left out if the network knows no faster way.
    assert maximise_pool(score, CUBE, rough=lambda X: None).index == int(CUBE[:, 0].argmax())
    assert sum(scored) == len(CUBE)


def test_excluded_points_are_not_on_the_list(network: KernelNetwork) -> None:
    fitted = Fitted(network, *data(3, 8))

    def score(X: Tensor) -> Tensor:
        return fitted.score("mean", X)

    first = maximise_pool(score, CUBE, rough=fitted.rough_moments)
    second = maximise_pool(score, CUBE, exclude=first.x[None], rough=fitted.rough_moments)
    assert second.index != first.index
    assert second.value < first.value
    assert second.fresh


def test_a_score_that_moments_say_nothing_about_is_climbed() -> None:
    X = torch.rand(20_000, 2, generator=generator(2), dtype=torch.float64)
    centre = torch.tensor([0.31, 0.77], dtype=torch.float64)

    def hidden(X: Tensor) -> Tensor:
        return -(X - centre).square().sum(-1)

    misleading = X.norm(dim=-1)
    values = shortlist(hidden, X, misleading, misleading)
    assert int(values.argmax()) == int(hidden(X).argmax())


def test_weights_are_part_of_the_score() -> None:
    m = 20_000
    mean = torch.rand(m, generator=generator(3), dtype=torch.float64)
    sd = 0.3 * torch.rand(m, generator=generator(4), dtype=torch.float64)
    X = torch.rand(m, 2, generator=generator(5), dtype=torch.float64)
    log_weight = torch.full_like(mean, -30.0)
    log_weight[mean.argsort()[m // 2 : m // 2 + 3]] = 0.0  # a few that nobody expects are cheap
    index = {tuple(x): i for i, x in enumerate(X.tolist())}

    def places(Y: Tensor) -> list[int]:
        return [index[tuple(x)] for x in Y.tolist()]

    def score(Y: Tensor) -> Tensor:
        at = places(Y)
        u = (mean[at] - mean.max()) / sd[at]
        return sd[at].log() + torch.nn.functional.softplus(3.0 * u).log() + log_weight[at]

    best, moments = float(score(X).max()), (mean, sd)
    weights = [lambda Y: log_weight[places(Y)]]
    assert maximise_pool(score, X, rough=lambda Y: moments, weights=weights).value == best
    assert maximise_pool(score, X, rough=lambda Y: moments).value < best


def test_every_trade_of_mean_and_deviation_is_listed() -> None:
    m = 20_000
    mean = torch.rand(m, generator=generator(3), dtype=torch.float64)
    sd = torch.rand(m, generator=generator(4), dtype=torch.float64)
    X = torch.rand(m, 2, generator=generator(5), dtype=torch.float64)
    values = shortlist(lambda X: torch.zeros(len(X), dtype=X.dtype), X, mean, sd)
    listed = values > -math.inf
    assert bool(listed[mean.topk(EACH).indices].all())
    assert bool(listed[sd.topk(EACH).indices].all())
    assert bool(listed[(mean + 2.0 * sd).topk(EACH).indices].all())
    assert RANDOM <= int(listed.sum()) <= RANDOM + len(OPTIMISM) * EACH + 2 * 8 * 32
