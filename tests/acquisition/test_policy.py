import math

import pytest
import torch
from torch import Tensor

from amortes.acquisition.climb import differentiate
from amortes.acquisition.fitted import Fitted
from amortes.acquisition.policy import (
    AT_THE_FACE,
    BELIEF,
    BELIEF_OF_MEANS,
    ENOUGH,
    SURE,
    LogBelief,
    automatic,
    is_noisy,
    recommended,
    worth_using,
)
from amortes.pretrained import as_network
from amortes.random import generator


def fit(n: int, noise: float) -> Fitted:
    rng = generator(3)
    X = torch.rand(n, 2, generator=rng, dtype=torch.float64)
    y = (-8.0 * (X - 0.4).square().sum(-1)).exp()
    y = y + noise * torch.randn(n, generator=rng, dtype=torch.float64)
    return Fitted(as_network(None), X, y)


@pytest.mark.parametrize(
    ("n", "noise", "expected"),
    [(19, 0.0, "logei"), (ENOUGH, 0.0, "logei"), (ENOUGH - 1, 0.2, "logei"), (ENOUGH, 0.2, "jes")],
)
def test_information_only_with_noise_and_enough_results(
    n: int, noise: float, expected: str
) -> None:
    fitted = fit(n, noise)
    assert is_noisy(fitted) == (noise > 0)
    assert automatic(fitted) == expected


def test_the_belief_is_in_the_middle_and_fades() -> None:
    X = torch.tensor([[0.5, 0.5], [0.5, 0.0], [1.0, 0.0], [0.3, 0.8], [0.7, 0.2]]).double()
    belief = LogBelief(10)(X)
    assert belief.argmax() == 0
    assert float(belief[2]) == pytest.approx(BELIEF / 10 * 2 * math.log(AT_THE_FACE))
    assert float(belief[3]) == pytest.approx(float(belief[4]))  # mirror images
    assert belief[0] > belief[3] > belief[1] > belief[2]
    assert torch.allclose(LogBelief(100)(X), 0.1 * belief)


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_recommendations_keep_away_from_faces_if_results_are_noisy(noise: float) -> None:
    fitted, X = fit(20, noise), torch.tensor([[0.5, 0.5], [0.0, 0.0]], dtype=torch.float64)
    change = worth_using(fitted, X, torch.zeros(2, dtype=torch.float64))
    expected = BELIEF_OF_MEANS / 20 * 2 * math.log(AT_THE_FACE) if noise else 0.0
    assert float(change[1]) == pytest.approx(expected)
    assert abs(float(change[0])) < 0.01


def test_at_a_face_it_still_has_a_slope() -> None:
    X = torch.tensor([[0.0, 1.0, 0.5], [0.2, 0.7, 1.0]], dtype=torch.float64)
    belief = LogBelief(5)
    (value, slope), expected = belief.with_gradient(X), differentiate(belief, X)
    assert torch.equal(value, expected[0])
    assert torch.allclose(slope, expected[1])
    assert slope[0, 0] > 0
    assert slope[0, 1] < 0
    assert slope[0, 2] == 0
    assert slope.isfinite().all()


def test_without_noise_a_place_never_tried_has_to_be_better_rather_surely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitted = fit(25, 0.0)
    best = fitted.best_points(1)[0]
    assert torch.equal(recommended(fitted, best), best)
    assert torch.equal(recommended(fitted, torch.ones(2).double()), best)
    optimum = torch.tensor([0.4, 0.4], dtype=torch.float64)
    assert float(fitted.chance_of_improvement(optimum[None])) > 0.9
    assert torch.equal(recommended(fitted, optimum), optimum)
    for chance, expected in ((SURE - 0.01, best), (SURE + 0.01, optimum)):
        known = torch.tensor([chance], dtype=torch.float64)
        monkeypatch.setattr(fitted, "chance_of_improvement", lambda Xq, known=known: known)
        assert torch.equal(recommended(fitted, optimum), expected)


def test_with_noise_it_is_the_best_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = fit(25, 0.2)

    def never(Xq: Tensor) -> Tensor:
        raise AssertionError

    monkeypatch.setattr(fitted, "chance_of_improvement", never)
    place = torch.tensor([0.9, 0.9], dtype=torch.float64)
    assert torch.equal(recommended(fitted, place), place)
