import itertools
import math

import pytest
import torch
from torch import Tensor

from amortes.acquisition import Domain, Fitted, SearchConfig, evaluate, maximise
from amortes.acquisition.bench import optimize_acqf_method
from amortes.acquisition.domain import is_among
from amortes.errors import ConfigError, DataError
from amortes.nets.kernel import KernelNetwork
from tests.acquisition.conftest import data


def grid(d: int, each: int) -> Tensor:
    axis = torch.linspace(0.0, 1.0, each, dtype=torch.float64)
    return torch.cartesian_prod(*[axis] * d).reshape(-1, d)


def waves(X: Tensor) -> Tensor:
    """Many local maxima."""
    return (11.0 * X).sin().sum(-1) - 2.0 * (X - 0.4).square().sum(-1)


@pytest.mark.parametrize(("d", "each"), [(1, 2001), (2, 101)])
@pytest.mark.parametrize("name", ["jes", "pes", "logei", "mean"])
def test_scores_against_a_dense_grid(network: KernelNetwork, name: str, d: int, each: int) -> None:
    fitted = Fitted(network, *data(d, 6 * d))
    values = evaluate(lambda X: fitted.score(name, X), grid(d, each))
    found = maximise(
        lambda X: fitted.score(name, X), Domain.cube(d), seed=0, around=fitted.best_points(8)
    )
    share = 1e-2 if name == "pes" else 1e-3  # rises steeply towards faces
    assert found.value >= float(values.max()) - share * float(values.max() - values.median())
    assert found.value == pytest.approx(float(fitted.score(name, found.x[None])), rel=1e-4)


def test_as_good_as_optimize_acqf(network: KernelNetwork) -> None:
    pytest.importorskip("botorch")
    fitted = Fitted(network, *data(4, 15))

    def score(X: Tensor) -> Tensor:
        return fitted.score("logei", X)

    theirs = optimize_acqf_method()(score, fitted, 0)
    ours = maximise(score, Domain.cube(4), seed=0, around=fitted.best_points(8)).value
    assert ours >= theirs - 0.01


@pytest.mark.parametrize("name", ["jes", "mes", "logei"])
def test_rough_moments_save_scores_not_height(network: KernelNetwork, name: str) -> None:
    for d, each in ((1, 2001), (2, 101)):
        fitted = Fitted(network, *data(d, 8 * d))
        values = evaluate(lambda X, f=fitted: f.score(name, X), grid(d, each))  # type: ignore[misc]
        scored: list[Tensor] = []

        def score(X: Tensor, fitted: Fitted = fitted, scored: list[Tensor] = scored) -> Tensor:
            scored.append(X.detach())
            return fitted.score(name, X)

        found = maximise(
            score,
            Domain.cube(d),
            seed=0,
            around=fitted.best_points(8),
            exclude=fitted.X,
            rough=fitted.rough_moments,
        )
        least = SearchConfig().tolerance * float(values.max() - values.median())
        assert found.value >= float(values.max()) - least
        assert len(scored[0]) < 0.6 * (SearchConfig().num_global + SearchConfig().num_local)
        assert not is_among(scored[0], fitted.X).any()


@pytest.mark.parametrize("distance", [1e-2, 1e-3, 1e-4])
def test_a_summit_right_beside_a_known_point_is_found(distance: float) -> None:
    # Improvement near a converged optimum: next to nothing, but for a neighbourhood of that size.
    known = torch.tensor([[0.3, 0.6, 0.5]], dtype=torch.float64)
    summit = known + distance * torch.tensor([0.5, -0.7, 0.4], dtype=torch.float64)

    def score(X: Tensor) -> Tensor:
        return -((X - summit) / distance).square().sum(-1).log1p()

    values = [
        maximise(score, Domain.cube(3), seed=seed, around=known, exclude=known).value
        for seed in range(4)
    ]
    assert sum(value > -0.05 for value in values) >= 3


def test_without_rough_moments_all_are_scored() -> None:
    scored = []

    def score(X: Tensor) -> Tensor:
        scored.append(len(X))
        return waves(X)

    found = maximise(score, Domain.cube(2), seed=0, rough=lambda X: None)
    assert found.value == pytest.approx(float(waves(grid(1, 100_001)).max()) * 2, abs=1e-3)
    assert scored[0] == 2 * SearchConfig().num_global


def test_many_local_maxima() -> None:
    best = float(waves(grid(1, 100_001)).max()) * 3
    found = maximise(waves, Domain.cube(3), seed=1)
    assert found.value == pytest.approx(best, abs=1e-3)


def test_scaling_a_score_does_not_change_the_point(network: KernelNetwork) -> None:
    X, y = data(3, 12)
    points = [
        maximise(
            lambda Xq, fitted=fitted: fitted.score("ei", Xq),  # type: ignore[misc]
            Domain.cube(3),
            seed=0,
            around=fitted.best_points(4),
        ).x
        for fitted in (
            Fitted(network, X, y),
            Fitted(network, X, 1e-3 * y + 8.0),
            Fitted(network, X, -y, maximise=False),
        )
    ]
    assert torch.allclose(points[0], points[1], atol=1e-4)
    assert torch.equal(points[0], points[2])


def test_the_seed_decides() -> None:
    def flat(X: Tensor) -> Tensor:
        return 0.0 * X.sum(-1)

    a, b, c = (maximise(flat, Domain.cube(2), seed=s, around=grid(2, 2)).x for s in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_fixed_coordinates_and_constraints_against_a_grid() -> None:
    points = grid(3, 41)
    A = torch.tensor([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]], dtype=torch.float64)
    b = torch.tensor([0.7, -0.1], dtype=torch.float64)
    feasible = points[(points @ A.mT <= b + 1e-9).all(1)]
    found = maximise(waves, Domain.cube(3, A=A, b=b), seed=0)
    assert (A @ found.x <= b + 1e-8).all()
    assert found.value >= float(waves(feasible).max()) - 1e-3
    on_plane = feasible[feasible[:, 2] == 0.25]
    found = maximise(waves, Domain.cube(3, A=A, b=b, fixed={2: 0.25}), seed=0)
    assert found.x[2] == 0.25
    assert found.value >= float(waves(on_plane).max()) - 1e-3


def mixed(X: Tensor) -> Tensor:
    """Project to an integer with 6 values, a choice among 4 (one-hot), and a real."""
    integer = (5.0 * X[:, :1]).round() / 5.0
    choice = torch.nn.functional.one_hot(X[:, 1:5].argmax(1), 4).to(X.dtype)
    return torch.cat([integer, choice, X[:, 5:]], dim=1)


def rugged(X: Tensor) -> Tensor:
    bonus = torch.tensor([0.0, 0.3, 0.9, 0.6], dtype=torch.float64)
    trap = torch.tensor([5.0, 1.0, -3.0, 2.0], dtype=torch.float64)
    choice = X[:, 1:5]
    integer = (9.0 * X[:, 0] + choice @ trap).cos()
    return choice @ bonus + integer - (X[:, 5] - 0.37).square()


def test_mixed_parameters_against_enumeration() -> None:
    rows = []
    for i, j in itertools.product(range(6), range(4)):
        one_hot = [float(j == k) for k in range(4)]
        rows.append([i / 5.0, *one_hot, 0.37])
    best = float(rugged(torch.tensor(rows, dtype=torch.float64)).max())
    domain = Domain.cube(6, project=mixed)
    for seed in range(3):
        found = maximise(rugged, domain, seed=seed)
        assert torch.equal(mixed(found.x[None])[0], found.x)
        assert found.value == pytest.approx(best, abs=1e-3)


def test_excluded_points_are_avoided_until_nothing_else_is_left() -> None:
    def thirds(X: Tensor) -> Tensor:
        return (3.0 * X).round() / 3.0

    domain = Domain.cube(2, project=thirds)
    points = thirds(grid(2, 4))
    order = points[waves(points).argsort(descending=True)]
    for k in (0, 1, 5, 15):
        found = maximise(waves, domain, seed=0, exclude=order[:k], around=order[:2])
        assert torch.allclose(found.x, order[k])
        assert found.fresh
    found = maximise(waves, domain, seed=0, exclude=points, rough=lambda X: (X[:, 0], X[:, 1]))
    assert torch.allclose(found.x, order[0])
    assert not found.fresh


def test_a_search_without_valid_points_says_so() -> None:
    with pytest.raises(DataError, match="NaN"):
        maximise(lambda X: X.sum(-1) * math.nan, Domain.cube(2), seed=0)
    A, b = torch.ones(1, 1, dtype=torch.float64), torch.tensor([0.4], dtype=torch.float64)
    domain = Domain.cube(1, A=A, b=b, project=torch.ones_like)
    with pytest.raises(DataError, match="rounded"):
        maximise(waves, domain, seed=0)


def test_bad_arguments() -> None:
    with pytest.raises(DataError, match="around must be a float64 matrix with 2 columns"):
        maximise(waves, Domain.cube(2), seed=0, around=grid(3, 2))
    with pytest.raises(DataError, match="scale must be"):
        maximise(waves, Domain.cube(2), seed=0, scale=torch.ones(3, dtype=torch.float64))
    with pytest.raises(DataError, match="exclude must be"):
        maximise(waves, Domain.cube(2), seed=0, exclude=grid(1, 2))
    with pytest.raises(ConfigError, match="starts: must be at least 1"):
        SearchConfig(starts=0)
    with pytest.raises(ConfigError, match="num_local"):
        SearchConfig(num_local=-1)


def test_sampling_alone() -> None:
    config = SearchConfig(coarse_steps=0, fine_steps=0, num_local=0, num_global=3, starts=5)
    found = maximise(waves, Domain.cube(2), seed=0, around=grid(2, 2), config=config)
    assert math.isfinite(found.value)
