import math

import pytest
import torch
from torch import Tensor

from amortes.acquisition import Fitted, tail
from amortes.acquisition.tail import draw_in, fit_robustly
from amortes.nets.kernel import KernelNetwork
from amortes.nets.transformer import Transformer, TransformerConfig
from amortes.oracles.brute_force import rank_correlation
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskConfig, TaskStream
from amortes.random import generator
from tests.acquisition.conftest import data

SKEWED = -torch.randn(31, generator=generator(2), dtype=torch.float64).exp().square()


def with_penalties(y: Tensor, penalty: float) -> Tensor:
    y = y.clone()
    y[::4] = penalty
    return y


def test_by_hand() -> None:
    y = torch.tensor([-8.0, 0.0, 2.0, -2.0, 4.0], dtype=torch.float64)
    spread = math.sqrt((0 + 4 + 16) / 3)  # of the better half about the median, 0
    drawn, log_slope = draw_in(y, maximise=True)
    assert drawn.tolist()[1:] == y.tolist()[1:]
    beyond = 8.0 / spread - 1.0
    assert float(drawn[0]) == pytest.approx(-spread - spread * beyond / (1.0 + beyond / 3.0))
    assert float(log_slope[0]) == pytest.approx(-2.0 * math.log(1.0 + beyond / 3.0))
    assert not log_slope[1:].any()


@pytest.mark.parametrize("maximise", [True, False])
def test_the_bad_side_moves_and_the_order_stays(maximise: bool) -> None:
    sign = 1.0 if maximise else -1.0
    drawn, log_slope = draw_in(sign * SKEWED, maximise=maximise)
    drawn = sign * drawn
    assert torch.equal(drawn.argsort(), SKEWED.argsort())
    moved = drawn != SKEWED
    assert 3 < int(moved.sum()) < len(SKEWED) // 2
    assert SKEWED[moved].max() < SKEWED[~moved].min()
    assert (drawn[moved] > SKEWED[moved]).all()
    assert torch.equal(log_slope < 0.0, moved)


def test_slopes_are_derivatives() -> None:
    # One value at a time, and not of the better half, so that the edge stays where it is.
    drawn, log_slope = draw_in(SKEWED, maximise=True)
    worst = int(SKEWED.argmin())
    for step in (1e-5, -1e-5):
        other = SKEWED.clone()
        other[worst] += step
        slope = (draw_in(other, maximise=True)[0][worst] - drawn[worst]) / step
        assert float(slope.log()) == pytest.approx(float(log_slope[worst]), abs=1e-4)


def test_units_do_not_matter() -> None:
    drawn, log_slope = draw_in(SKEWED, maximise=True)
    other, same = draw_in(7.0 + 3.0 * SKEWED, maximise=True)
    torch.testing.assert_close(other, 7.0 + 3.0 * drawn)
    torch.testing.assert_close(same, log_slope)


@pytest.mark.parametrize("y", [[5.0], [1.0, 2.0], [3.0, 3.0, 3.0], [1.0, 1.0, 1.0, -50.0]])
def test_nothing_to_tell_apart(y: list[float]) -> None:
    values = torch.tensor(y, dtype=torch.float64)
    drawn, log_slope = draw_in(values, maximise=True)
    assert torch.equal(drawn, values)
    assert not log_slope.any()


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("penalty", [1e3, 1e12, 1e90])
def test_penalties_do_not_hide_the_rest(
    network: KernelNetwork, maximise: bool, penalty: float
) -> None:
    X, y = data(2, 24)
    sign = 1.0 if maximise else -1.0
    told = sign * with_penalties(y, -penalty)
    Xq = torch.rand(200, 2, generator=generator(4), dtype=torch.float64)
    truth = -(Xq - 0.6).square().sum(-1)
    means = {
        "plain": Fitted(network, X, told, maximise=maximise).score("mean", Xq),
        "drawn in": fit_robustly(network, X, told, maximise=maximise).score("mean", Xq),
        "without": Fitted(network, X, y).score("mean", Xq),
    }
    ranks = {name: rank_correlation(mean, truth) for name, mean in means.items()}
    assert ranks["without"] > 0.9
    assert ranks["drawn in"] > ranks["plain"] + 0.2


def test_good_values_keep_their_units(network: KernelNetwork) -> None:
    X, y = data(2, 24)
    told = with_penalties(y, -1e6)
    fitted = fit_robustly(network, X, told, maximise=True)
    best = int(y.argmax())
    assert fitted.y[best] == told[best] == y[best]
    predicted = fitted.predict(X[best][None])
    assert abs(float(predicted.mean - y[best])) < 3.0 * float(predicted.sd)


@pytest.mark.parametrize("d", [1, 2, 6])
def test_functions_of_the_prior_are_taken_as_they_are(network: KernelNetwork, d: int) -> None:
    stream = TaskStream(PRIORS["robust"], 3, TaskConfig(batch_size=8, num_queries=1))
    task = stream.batch_of(0, d, 30)
    for X, y in zip(task.X, task.y, strict=True):
        assert torch.equal(fit_robustly(network, X, y, maximise=True).y, y)


def test_the_likelier_one_is_taken(network: KernelNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    X = torch.rand(25, 1, generator=generator(6), dtype=torch.float64)
    y = (12.0 * X[:, 0]).sin() - 1e4 * (X[:, 0] - 0.6).clamp_min(0.0).square()
    drawn, log_slope = draw_in(y, maximise=True)
    plain, other = (Fitted(network, X, values).log_evidence for values in (y, drawn))
    assert plain is not None
    assert other is not None
    better = other + float(log_slope.sum()) - plain
    for margin, taken in ((better - 1e-6, drawn), (better + 1e-6, y)):
        monkeypatch.setattr(tail, "MARGIN", margin)
        assert torch.equal(fit_robustly(network, X, y, maximise=True).y, taken)


def test_a_function_that_is_all_but_solved_is_no_noise(network: KernelNetwork) -> None:
    # Most points are on a ridge, hardly below the best, and all others far below.
    x, offset = torch.rand(2, 20, generator=generator(5), dtype=torch.float64)
    X = torch.stack([x, (x + 0.7 * offset**6).remainder(1.0)], dim=1)
    y = -(X[:, 0] - X[:, 1]).square()
    drawn, log_slope = draw_in(y, maximise=True)
    plain, other = Fitted(network, X, y), Fitted(network, X, drawn)
    assert plain.log_evidence is not None
    assert other.log_evidence is not None
    assert other.log_evidence + float(log_slope.sum()) > plain.log_evidence + tail.MARGIN
    assert torch.equal(fit_robustly(network, X, y, maximise=True).y, y)


def test_a_network_that_does_not_know_takes_results_as_they_are() -> None:
    config = TransformerConfig(width=8, layers=1, heads=2, hidden=8, bars=20, gain_bars=20)
    network = Transformer(config, PRIORS["robust"]).eval()
    X, y = data(2, 12)
    told = with_penalties(y, -1e6)
    fitted = fit_robustly(network, X, told, maximise=True)
    assert fitted.log_evidence is None
    assert torch.equal(fitted.y, told)
