import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from amortes.acquisition import Domain, differentiate, with_gradient
from amortes.acquisition.climb import KEPT, PATIENCE, _learn, climb
from amortes.random import generator


def settings(**changes: float) -> dict[str, float]:
    defaults = {"coarse_steps": 8, "fine_steps": 12, "survivors": 3}
    return defaults | {"max_step": 0.3, "tolerance": 0.0, "lowest": 0.0} | changes


def run(score: object, domain: Domain, x: Tensor, **changes: float) -> tuple[Tensor, Tensor]:
    f = score(x).detach()  # type: ignore[operator]
    first = torch.full((len(x),), 0.1, dtype=torch.float64)
    return climb(score, domain, domain.contains, x, f, first_step=first, **settings(**changes))  # type: ignore[arg-type]


def quadratic(d: int, seed: int) -> tuple[Tensor, Tensor]:
    """A negative definite matrix with condition number 100, and a vector."""
    rng = generator(seed)
    V = torch.linalg.qr(torch.randn(d, d, generator=rng, dtype=torch.float64))[0]
    H = -V @ torch.diag(torch.logspace(0.0, 2.0, d, dtype=torch.float64)) @ V.mT
    return H, torch.rand(d, generator=rng, dtype=torch.float64) * 2.0 - 0.5


def test_a_concave_quadratic_in_a_box_against_scipy() -> None:
    for seed in range(3):
        H, centre = quadratic(5, seed)

        def score(x: Tensor, H: Tensor = H, centre: Tensor = centre) -> Tensor:
            return 0.5 * ((x - centre) @ H * (x - centre)).sum(-1)

        starts = torch.rand(6, 5, generator=generator(9), dtype=torch.float64)
        x, f = run(score, Domain.cube(5), starts, fine_steps=25)
        exact = minimize(  # type: ignore[call-overload]
            lambda z, score=score: -float(score(torch.from_numpy(z)[None])),
            np.full(5, 0.5),
            bounds=[(0.0, 1.0)] * 5,
            method="L-BFGS-B",
            options={"ftol": 1e-14},
        )
        assert len(x) == 3
        assert float(f.max()) == pytest.approx(-exact.fun, abs=1e-4)
        assert torch.equal(score(x), f)


def test_it_slides_along_a_constraint() -> None:
    # Nearest point of x + y <= 0.8 to (1, 0.4) is (0.7, 0.1).
    A = torch.ones(1, 2, dtype=torch.float64)
    domain = Domain.cube(2, A=A, b=torch.tensor([0.8], dtype=torch.float64))
    target = torch.tensor([1.0, 0.4], dtype=torch.float64)
    start = torch.tensor([[0.1, 0.69]], dtype=torch.float64)
    x, _ = run(lambda x: -(x - target).square().sum(-1), domain, start)
    assert torch.allclose(x[0], torch.tensor([0.7, 0.1], dtype=torch.float64), atol=1e-3)
    assert domain.contains(x).all()


def test_integers_move_together_with_reals() -> None:
    def project(x: Tensor) -> Tensor:
        return torch.cat([(4.0 * x[:, :1]).round() / 4.0, x[:, 1:]], dim=1)

    target = torch.tensor([0.6, 0.33], dtype=torch.float64)
    start = torch.tensor([[0.0, 0.9]], dtype=torch.float64)
    domain = Domain.cube(2, project=project)
    x, _ = run(lambda x: -(x - target).square().sum(-1), domain, start)
    assert x[0].tolist() == pytest.approx([0.5, 0.33], abs=1e-3)


def test_values_never_fall_and_forbidden_points_are_not_entered() -> None:
    start = torch.full((1, 1), 0.2, dtype=torch.float64)

    def score(x: Tensor) -> Tensor:
        return torch.where(x > 0.6, torch.nan, x).squeeze(-1)

    x, f = run(score, Domain.cube(1), start)
    assert 0.55 < float(x) <= 0.6
    domain = Domain.cube(1)
    x, f = climb(
        lambda x: x.squeeze(-1), domain, lambda x: x[:, 0] < 0.5, start, start[:, 0],
        first_step=torch.full((1,), 0.1), **settings(),  # type: ignore[arg-type]
    )  # fmt: skip
    assert 0.45 < float(f) < 0.5
    assert run(score, domain, start, coarse_steps=0, fine_steps=0)[0] is start


def test_it_stops_when_nothing_is_promised_or_promises_are_not_kept() -> None:
    calls = []

    def slope(x: Tensor, size: float) -> Tensor:
        calls.append(1)
        return 1.0 + size * x.sum(-1)

    start = torch.full((4, 2), 0.3, dtype=torch.float64)
    run(lambda x: slope(x, 1e-9), Domain.cube(2), start, tolerance=1e-3)
    assert len(calls) == 3  # the first value, gradient, and step
    calls.clear()
    climb(
        lambda x: slope(x, 1.0), Domain.cube(2), lambda x: (x <= 0.3).all(1), start,
        slope(start, 1.0), first_step=torch.full((4,), 0.1), **settings(tolerance=1e-3),  # type: ignore[arg-type]
    )  # fmt: skip
    assert len(calls) == 2 + PATIENCE


def test_one_start_that_promises_is_enough() -> None:
    # From the plateau nothing is to be had; the other start is lower but at the foot of a hill.
    def score(x: Tensor) -> Tensor:
        return torch.where(x < 0.4, 1.0, 3.0 - 20.0 * (x - 0.8).square()).squeeze(-1)

    start = torch.tensor([[0.2], [0.45]], dtype=torch.float64)
    _, f = run(score, Domain.cube(1), start, tolerance=3e-3, lowest=0.5)
    assert float(f.max()) == pytest.approx(3.0, abs=0.01)


def test_each_start_has_a_first_step_of_its_own() -> None:
    tried: list[Tensor] = []

    def score(x: Tensor) -> Tensor:
        tried.append(x.detach().clone())
        return x.sum(-1)

    start = torch.full((2, 2), 0.3, dtype=torch.float64)
    first = torch.tensor([0.1, 1e-4], dtype=torch.float64)
    domain = Domain.cube(2)
    climb(
        score, domain, domain.contains, start, start.sum(-1), first_step=first,
        **settings(coarse_steps=1, fine_steps=0),  # type: ignore[arg-type]
    )  # fmt: skip
    assert torch.allclose(tried[-1] - start, first[:, None])


def test_the_update_satisfies_the_secant_equation_and_stays_positive() -> None:
    rng = np.random.default_rng(4)
    s, y = rng.normal(size=(2, 6, 3))
    H = np.tile(np.eye(3), (6, 1, 1))
    new, curved = _learn(H, np.zeros(6, dtype=bool), s, y, np.array([1.0, 0.1, 0.3]))
    assert np.array_equal(curved, (s * y).sum(-1) > 0)
    assert 0 < curved.sum() < 6
    secant = (new @ y[..., None])[..., 0]
    np.testing.assert_allclose(secant[curved], s[curved])
    assert np.array_equal(new[~curved], H[~curved])
    assert (np.linalg.eigvalsh(new) > 0).all()


def test_known_scales_save_steps() -> None:
    # A hill ten times as steep along one coordinate as along the other.
    scale = torch.tensor([0.1, 1.0], dtype=torch.float64)
    top = torch.tensor([0.5, 0.9], dtype=torch.float64)

    def hill(x: Tensor) -> Tensor:
        return -((x - top) / scale).square().sum(-1)

    start = torch.tensor([[0.45, 0.1]], dtype=torch.float64)
    steps = {"coarse_steps": 4, "fine_steps": 0}
    _, blind = run(hill, Domain.cube(2), start, **steps)
    x, told = run(hill, Domain.cube(2), start, **steps, scale=scale)  # type: ignore[arg-type]
    assert float(told) > 0.1 * float(blind)
    assert torch.allclose(x[0], top, atol=0.05)
    _, same = run(hill, Domain.cube(2), start, **steps, scale=7.0 * scale)  # type: ignore[arg-type]
    assert torch.equal(told, same)  # only their ratios matter


def test_starts_that_cannot_reach_the_best_are_given_up() -> None:
    # Two hills, of height 1 and 0.1; the best few of the starts are on the higher one.
    counts = []

    def score(x: Tensor) -> Tensor:
        counts.append(len(x))
        high, low = (x - 0.2).square().sum(-1), (x - 0.8).square().sum(-1)
        return (-20 * high).exp() + 0.1 * (-20 * low).exp()

    close = 0.2 + torch.linspace(0.05, 0.1, KEPT, dtype=torch.float64)
    starts = torch.cat([close, torch.full((5,), 0.75, dtype=torch.float64)])[:, None].expand(-1, 2)
    _, f = run(score, Domain.cube(2), starts)
    assert counts[:3] == [KEPT + 5, KEPT + 5, KEPT]  # values, gradients, the first step
    assert float(f.max()) == pytest.approx(1.0, abs=1e-4)


POINTS = torch.tensor([[0.5, 0.1], [2.0, 0.7]], dtype=torch.float64)


class Parabola:
    """Its gradient is right, but told in a way that shows who was asked."""

    asked = 0

    def __call__(self, X: Tensor) -> Tensor:
        return X.square().sum(-1)

    def with_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        self.asked += 1
        return self(X), 2.0 * X


def test_a_score_that_knows_its_gradient_is_asked() -> None:
    score = Parabola()
    f, g = with_gradient(score, POINTS)
    assert score.asked == 1
    for ours, theirs in zip((f, g), differentiate(score, POINTS), strict=True):
        assert torch.equal(ours, theirs)
    assert score.asked == 1


def test_other_scores_are_differentiated_even_without_gradients() -> None:
    with torch.inference_mode():
        f, g = with_gradient(lambda X: X.prod(-1), POINTS)
    assert torch.equal(f, POINTS.prod(-1))
    assert torch.equal(g, POINTS.flip(-1))
    assert not f.requires_grad
    f, g = with_gradient(lambda X: X.detach().sum(-1), POINTS)
    assert torch.equal(f, POINTS.sum(-1))
    assert torch.equal(g, torch.zeros_like(POINTS))
