import pytest
import torch
from torch import Tensor

from amortes.errors import ConfigError
from amortes.prior.traces import TraceConfig, Tracer
from amortes.random import generator


def bowl(x: Tensor) -> Tensor:
    """A function with its maximum in the middle."""
    return -(x - 0.5).square().sum(-1)


def make(
    b: int, d: int, n: int, q: int, config: TraceConfig | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    tracer = Tracer(b, d, config or TraceConfig(), generator(d, n, q))
    X, y = tracer.context(n, n + q, bowl)
    Xq, near = tracer.queries(q, n + q, X, torch.full((b, d), 0.5))
    return X, y, Xq, near


@pytest.mark.parametrize(("d", "n"), [(1, 60), (2, 60), (7, 5)])
def test_points_are_in_the_cube_and_all_distinct(d: int, n: int) -> None:
    X, y, Xq, _ = make(50, d, n, 40)
    points = torch.cat([X, Xq], dim=1)
    assert ((points >= 0) & (points <= 1)).all()
    assert torch.equal(y, bowl(X))
    for dataset in points:
        assert len(dataset.unique(dim=0)) == n + 40


def test_clustered_traces_gather_near_the_best_point_and_touch_the_boundary() -> None:
    clustered = make(300, 3, 60, 40)[0]
    uniform = make(300, 3, 60, 40, TraceConfig(kind="uniform"))[0]
    assert bowl(clustered[:, 30:]).mean() > bowl(uniform[:, 30:]).mean() + 0.03
    assert ((clustered == 0) | (clustered == 1)).double().mean() > 0.02
    assert not ((uniform == 0) | (uniform == 1)).any()
    # Uniform on [0, 1]: mean 1/2 and variance 1/12, within five standard errors.
    assert uniform.mean() == pytest.approx(0.5, abs=5 * 0.29 / uniform.numel() ** 0.5)
    assert uniform.var() == pytest.approx(1 / 12, rel=0.02)


def test_queries_around_the_optimum_are_marked() -> None:
    _, _, Xq, near = make(400, 2, 20, 50, TraceConfig(optimum_share=0.5))
    distance = (Xq - 0.5).norm(dim=-1)
    assert 0.1 < near.double().mean() < 0.5  # half of the local ones, which are 25-75 %
    assert distance[near].median() < 0.15 < distance[~near].median()
    assert not make(50, 2, 20, 50, TraceConfig(optimum_share=0.0))[3].any()


def test_local_share_rises_along_the_trace() -> None:
    X = make(2000, 6, 100, 1)[0]
    best = bowl(X).cummax(dim=1).indices
    previous = X.gather(1, best[:, :-1, None].expand(-1, -1, 6))
    step = (X[:, 1:] - previous).norm(dim=-1)
    close = (step < 0.3).double().mean(0)
    assert close[-20:].mean() > close[:20].mean() + 0.1


def test_invalid_values_name_the_field() -> None:
    with pytest.raises(ConfigError, match="kind"):
        TraceConfig(kind="gaussian")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="optimum_share"):
        TraceConfig(optimum_share=1.5)
