import pytest
import torch
from scipy import stats
from torch import Tensor

from amortes.acquisition import Domain
from amortes.acquisition.domain import CHUNK, MARGIN, is_among
from amortes.errors import DataError
from amortes.random import generator


def matrix(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


SIMPLEX = Domain.cube(3, A=matrix([1.0, 1.0, 1.0]), b=column(0.5))


def test_samples_cover_the_cube_and_its_faces() -> None:
    x = Domain.cube(4).sample(512, seed=3)
    assert x.shape == (512, 4)
    assert (x >= 0).all()
    assert (x <= 1).all()
    on_face = ((x == 0) | (x == 1)).any(1).double().mean()
    assert 0.3 < on_face < 0.95
    assert (x.mean(0) - 0.5).abs().max() < 0.03


def test_samples_are_a_function_of_the_seed() -> None:
    for domain in (Domain.cube(3), SIMPLEX):
        assert torch.equal(domain.sample(16, seed=1), domain.sample(16, seed=1))
        assert not torch.equal(domain.sample(16, seed=1), domain.sample(16, seed=2))


def test_fixed_coordinates_do_not_move() -> None:
    domain = Domain.cube(3, fixed={1: 0.25}, A=matrix([1.0, 1.0, 0.0]), b=column(0.5))
    x = domain.sample(64, seed=0)
    assert (x[:, 1] == 0.25).all()
    assert (x[:, 0] <= 0.25 + 1e-8).all()
    moved = domain.bring_in(x + 0.3, x)
    assert (moved[:, 1] == 0.25).all()
    assert domain.contains(moved).all()
    everything = Domain.cube(2, fixed={0: 0.2, 1: 0.1}, A=matrix([1.0, 1.0]), b=column(0.5))
    assert torch.equal(everything.sample(4, seed=0), column(0.2, 0.1).expand(4, 2))


def test_samples_of_a_polytope_are_in_it_and_half_are_uniform() -> None:
    x = SIMPLEX.sample(400, seed=5)
    assert SIMPLEX.contains(x).all()
    inside = x[200:]
    # Uniform in a simplex: (sum / 0.5)^3 is uniform in [0, 1].
    assert stats.kstest(((inside.sum(1) / 0.5) ** 3).numpy(), "uniform").pvalue > 1e-3
    # The other half is brought in from the cube, mostly to the face.
    assert (x[:200].sum(1) > 0.5 - 1e-6).double().mean() > 0.5


def test_the_centre_has_the_largest_ball() -> None:
    # The incircle of a right isosceles triangle with legs 1/2.
    triangle = Domain.cube(2, A=matrix([1.0, 1.0]), b=column(0.5))
    radius = 0.5 / (2.0 + 2.0**0.5)
    assert torch.allclose(triangle.centre, column(radius, radius))
    box = Domain(lower=column(0.0, 0.2), upper=column(1.0, 0.4))
    assert torch.allclose(box.centre, column(0.5, 0.3))


def test_points_outside_are_brought_in_and_those_inside_stay() -> None:
    rng = generator(0)
    A = matrix([1.0, 1.0, 1.0], [-2.0, 1.0, 0.0], [0.0, 0.3, -1.0])
    domain = Domain.cube(3, A=A, b=column(1.2, 0.1, 0.0))
    inside = domain.sample(200, seed=1)
    assert torch.equal(domain.bring_in(inside, domain.centre), inside)
    far = inside + torch.randn(200, 3, generator=rng, dtype=torch.float64)
    found = domain.bring_in(far, inside)
    assert domain.contains(found).all()
    # It slides along faces instead of stopping at them: close to the nearest point.
    assert ((found - inside).norm(dim=1) > 1e-3).double().mean() > 0.9


def test_contains_forgives_rounding_only() -> None:
    assert SIMPLEX.contains(matrix([0.5 + 0.5 * MARGIN, 0.0, 0.0])).all()
    assert not SIMPLEX.contains(matrix([0.5 + 1e-6, 0.0, 0.0])).any()
    assert not SIMPLEX.contains(matrix([-0.1, 0.0, 0.0])).any()


def test_discrete_values_are_the_callers_business() -> None:
    domain = Domain.cube(2, project=lambda x: (4.0 * x).round() / 4.0)
    x = domain.sample(64, seed=0)
    assert torch.equal(x, (4.0 * x).round() / 4.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"A": matrix([1.0, 1.0])}, "both A and b"),
        ({"A": matrix([1.0, 1.0, 1.0]), "b": column(1.0)}, "1 x 2"),
        ({"A": matrix([1.0, torch.nan]), "b": column(1.0)}, "finite"),
        ({"A": matrix([1.0, 1.0]), "b": column(-0.1)}, "no point"),
        ({"A": matrix([1.0, 1.0], [-1.0, -1.0]), "b": column(1.0, -1.0)}, "equalities"),
        ({"fixed": {2: 0.5}}, r"coordinate 2.*0\.\.1"),
        ({"fixed": {0: 1.5}}, "to 1.5"),
    ],
)
def test_impossible_domains(arguments: dict[str, Tensor], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Domain.cube(2, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (column(0.0), column(0.0, 1.0)),
        (column(0.5), column(0.4)),
        (column(torch.nan), column(1.0)),
        (matrix([0.0]), matrix([1.0])),
        (column(), column()),
    ],
)
def test_bad_boxes(lower: Tensor, upper: Tensor) -> None:
    with pytest.raises(DataError, match="lower"):
        Domain(lower=lower, upper=upper)


def test_is_among() -> None:
    X = torch.rand(3 * CHUNK + 7, 2, generator=generator(0), dtype=torch.float64)
    assert is_among(X, None).sum() == 0
    assert is_among(X, X[:0]).sum() == 0
    assert is_among(X, X[10:13]).nonzero().flatten().tolist() == [10, 11, 12]
    assert not is_among(X[:1], X[:1] + 1e-6).any()
