import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from amortes.acquisition import SCORES, Fitted, differentiate
from amortes.acquisition.fitted import fit_warped
from amortes.errors import ConfigError, DataError
from amortes.nets.base import GAINS, Hint
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.nets.transformer import Transformer, TransformerConfig
from amortes.prior.gp import PRIORS
from amortes.random import generator
from tests.acquisition.conftest import data

Q = torch.rand(5, 2, generator=generator(3), dtype=torch.float64)


Joint = tuple[Tensor, Tensor, Tensor, Tensor]


def jointly(network: KernelNetwork, X: Tensor, z: Tensor, Xq: Tensor) -> Joint:
    """Weights, noise, means and covariances of f at q points, by solving linear systems.

    Under the k particles: `k`, `k`, `k x q`, `k x q x q`.
    """
    particles = network.condition(X[None], z[None]).conditioned.particles
    prior = network.prior
    means, covariances = [], []
    for p in range(particles.log_weights.shape[1]):
        hyper = particles.hyper[0, p]

        def kernel(A: Tensor, B: Tensor, lengthscale: Tensor = hyper.lengthscale) -> Tensor:
            r2 = ((A[:, None] - B) / lengthscale).square().sum(-1)
            return (-0.5 * r2).exp() + prior.mean.scale**2  # output variance 1

        K = kernel(X, X) + hyper.noise_sd.square() * torch.eye(len(X), dtype=torch.float64)
        solved = torch.linalg.solve(K, kernel(X, Xq))
        means.append(prior.mean.loc + solved.mT @ (z - prior.mean.loc))
        covariances.append(kernel(Xq, Xq) - kernel(Xq, X) @ solved)
    noise = particles.hyper.noise_sd[0].square()
    return particles.log_weights[0].exp(), noise, torch.stack(means), torch.stack(covariances)


def by_hand(network: KernelNetwork, X: Tensor, z: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of y at one point."""
    w, noise, means, covariances = jointly(network, X, z, x[None])
    m, v = means[:, 0], covariances[:, 0, 0] + noise
    mean = (w * m).sum()
    return mean, (w * (v + (m - mean).square())).sum()


@pytest.mark.parametrize("maximise", [True, False])
def test_predictions_are_those_of_the_exact_mixture(network: KernelNetwork, maximise: bool) -> None:
    X, y = data(2, 10)
    fitted = Fitted(network, X, y, maximise=maximise)
    predicted = fitted.predict(Q)
    sign = 1.0 if maximise else -1.0
    z = sign * (y - y.mean()) / y.std()
    for i, x in enumerate(Q):
        mean, variance = by_hand(network, X, z, x)
        assert predicted.mean[i] == pytest.approx(float(y.mean() + sign * y.std() * mean))
        assert predicted.variance[i] == pytest.approx(float(y.var() * variance), rel=1e-5)
    torch.testing.assert_close(fitted.posterior_mean(Q), predicted.mean, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("maximise", [True, False])
def test_improvement_is_over_the_value_of_the_best_point(
    network: KernelNetwork, maximise: bool
) -> None:
    X, y = data(2, 10)
    fitted = Fitted(network, X, y, maximise=maximise)
    sign = 1.0 if maximise else -1.0
    means = sign * fitted.posterior_mean(X)
    best = X[means.argmax()]
    assert torch.equal(fitted.best_points(1)[0], best)
    assert sign * fitted.best == pytest.approx(float(means.max()))
    z = sign * (y - y.mean()) / y.std()
    w, _, m, covariance = jointly(network, X, z, torch.cat([Q, best[None]]))
    rng, count = generator(1), 100_000
    root = torch.linalg.cholesky(covariance + 1e-10 * torch.eye(6, dtype=torch.float64))
    noise = torch.randn(len(w), 6, count, generator=rng, dtype=torch.float64)
    f = m[..., None] + root @ noise  # k x 6 x count
    gained = (f[:, :-1] - f[:, -1:]).clamp_min(0.0)
    expected = (w[:, None] * gained.mean(-1)).sum(0)
    error = 5.0 * (w[:, None] * gained.std(-1)).sum(0) / count**0.5 + 1e-5
    ei = fitted.score("ei", Q)
    assert (ei > 0.01).any()
    assert ((ei - expected).abs() < error).all()
    assert torch.allclose(fitted.score("logei", Q).exp(), ei)


@pytest.mark.parametrize("maximise", [True, False])
def test_improvement_and_bound_against_sampling(network: KernelNetwork, maximise: bool) -> None:
    fitted = Fitted(network, *data(2, 10), maximise=maximise)
    sign = 1.0 if maximise else -1.0
    draws = fitted.units.to_network(fitted.latent(Q).sample(generator(1), (200_000,)))
    best = fitted.units.to_network(torch.tensor(fitted.best, dtype=torch.float64))
    improvement = (draws - best).clamp_min(0.0)
    error = 5.0 * improvement.std(0) / 200_000**0.5 + 1e-5
    ei = fitted.score("ei", Q, best=fitted.best)
    assert (ei > 0.01).any()
    assert ((ei - improvement.mean(0)).abs() < error).all()
    assert torch.allclose(fitted.score("logei", Q, best=fitted.best).exp(), ei)
    bound = draws.mean(0) + 1.5 * draws.std(0)
    assert torch.allclose(fitted.score("ucb", Q, beta=2.25), bound, atol=0.02)
    assert torch.allclose(fitted.score("mean", Q), draws.mean(0), atol=0.01)
    # Nothing is left to improve on a target that is out of reach.
    assert (fitted.score("ei", Q, best=sign * 1e3) < 1e-9).all()


def test_the_best_point_does_not_improve_on_itself(network: KernelNetwork) -> None:
    X = torch.linspace(0.0, 1.0, 40, dtype=torch.float64)[:, None]
    noise = torch.randn(40, generator=generator(2), dtype=torch.float64)
    fitted = Fitted(network, X, 3.0 * (3.0 * X[:, 0]).sin() + noise)
    best = fitted.best_points(1)
    assert fitted.score("ei", best) < 1e-3
    assert fitted.score("ei", best, best=fitted.best) > 0.05  # as if its value were known


@pytest.mark.parametrize("name", SCORES)
def test_units_do_not_matter(network: KernelNetwork, name: str) -> None:
    X, y = data(2, 10)
    plain = Fitted(network, X, y).score(name, Q)
    scaled = Fitted(network, X, 3e4 * y - 7e5).score(name, Q)
    assert torch.allclose(scaled, plain, rtol=1e-4)
    flipped = Fitted(network, X, -y, maximise=False).score(name, Q)
    assert torch.allclose(flipped, plain, rtol=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_gradients(network: KernelNetwork, name: str) -> None:
    fitted = Fitted(copy.deepcopy(network).double(), *data(2, 10))
    X = Q.clone().requires_grad_()
    # A call without gradients first must not spoil what later calls share.
    with torch.inference_mode():
        value = fitted.score(name, Q)
    score = fitted.score(name, X)
    assert torch.allclose(score.detach(), value, rtol=1e-6)
    assert score.shape == (5,)
    assert score.dtype == torch.float64
    for _ in range(2):
        (slope,) = torch.autograd.grad(fitted.score(name, X).sum(), X)
    h = 1e-6
    for i in range(2):
        step = torch.zeros_like(Q)
        step[:, i] = h
        difference = (fitted.score(name, Q + step) - fitted.score(name, Q - step)) / (2 * h)
        assert torch.allclose(slope[:, i], difference, rtol=1e-4, atol=1e-6 * float(value.std()))


def test_gradients_with_weights_that_require_them() -> None:
    network = KernelNetwork(KernelConfig(), PRIORS["robust"]).eval()  # an encoder
    fitted = Fitted(network, *data(2, 5))
    X = Q.clone().requires_grad_()
    # A graph kept from the first call would be gone in the second.
    first, second = (torch.autograd.grad(fitted.score("jes", X).sum(), X)[0] for _ in range(2))
    assert torch.equal(first, second)
    assert float(first.abs().min()) > 0


def test_the_network_is_conditioned_once(
    network: KernelNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    condition = network.condition

    def counted(*args: Any) -> Any:
        calls.append(1)
        return condition(*args)

    monkeypatch.setattr(network, "condition", counted)
    fitted = Fitted(network, *data(2, 10))
    for name in SCORES:
        fitted.score(name, Q)
    fitted.hinted(f=80.0).predict(Q)
    waiting = fitted.with_pending(Q[:2])
    assert len(calls) == 1
    again = Fitted(network, *data(2, 10), Q[:2])
    for name in SCORES:
        assert torch.equal(waiting.score(name, Q), again.score(name, Q))


@pytest.mark.parametrize("name", SCORES)
def test_gradients_without_a_graph_are_those_of_autograd(fitted: Fitted, name: str) -> None:
    found = fitted.score_with_gradient(name, Q)
    expected = differentiate(lambda X: fitted.score(name, X), Q)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", GAINS)
def test_the_mean_of_the_gain_is_the_score(fitted: Fitted, name: str) -> None:
    gain = fitted.gain_distribution(name, Q)
    assert gain.batch_shape == (5,)
    assert torch.allclose(gain.mean, fitted.score(name, Q))
    assert (gain.variance > 0).all()


@pytest.mark.parametrize("maximise", [True, False])
def test_hints_are_in_the_units_of_the_user(network: KernelNetwork, maximise: bool) -> None:
    X, y = data(2, 10)
    fitted = Fitted(network, X, y, maximise=maximise)
    sign = 1.0 if maximise else -1.0
    x = torch.tensor([0.3, 0.9], dtype=torch.float64)
    f = float(fitted.best) + sign * 3.0
    state = network.condition(X[None], fitted.units.to_network(y)[None])
    z = fitted.units.to_network(torch.tensor([f], dtype=torch.float64))
    for place, value in ((x, None), (None, f), (x, f)):
        told = fitted.hinted(place, value)
        hint = Hint(None if place is None else x[None], None if value is None else z)
        expected = network.predict(state, Q[None], hint).mean[0]
        assert torch.allclose(told.predict(Q).mean, y.mean() + sign * y.std() * expected)
        assert told.best != fitted.best
        with pytest.raises(ConfigError, match="no gain left"):
            told.score("pes", Q)
    # At the optimum the function has the value that was told.
    assert fitted.hinted(x, f).latent(x[None]).mean == pytest.approx(f, rel=1e-3)
    with pytest.raises(DataError, match="both are None"):
        fitted.hinted()


def test_pending_points_reduce_uncertainty_but_not_the_mean(network: KernelNetwork) -> None:
    X, y = data(2, 10)
    fitted = Fitted(network, X, y)
    waiting = fitted.with_pending(Q[:2])
    assert torch.allclose(waiting.posterior_mean(Q), fitted.posterior_mean(Q))
    assert (waiting.latent(Q[:2]).variance < 0.7 * fitted.latent(Q[:2]).variance).all()
    for name in ("pes", "mes", "jes", "ei", "ucb"):
        scores = fitted.score(name, Q)
        chosen = Q[scores.argmax()][None]
        assert fitted.with_pending(chosen).score(name, chosen) < scores.max()
    assert waiting.with_pending(None).X_pending is None
    assert Fitted(network, X, y, Q[:0]).X_pending is None


def test_kriging_believer_in_pending_points(network: KernelNetwork) -> None:
    fitted = Fitted(network, *data(2, 10))
    assert fitted.kriging_believer() is fitted
    waiting = fitted.with_pending(Q[:1]).hinted(f=90.0)
    believer = waiting.kriging_believer()
    assert believer.X_pending is None
    assert len(believer.X) == 11
    assert float(believer.y[-1]) == pytest.approx(float(waiting.posterior_mean(Q[:1])))
    assert believer.told == waiting.told


def test_best_points_are_in_order(fitted: Fitted) -> None:
    points = fitted.best_points(4)
    means = fitted.posterior_mean(points)
    assert (means.diff() <= 0).all()
    assert torch.equal(points[0], fitted.X[fitted.posterior_mean(fitted.X).argmax()])
    assert len(fitted.best_points(99)) == 10


@pytest.mark.parametrize(
    "y",
    [[4.0], [3.0, 3.0, 3.0], [0.0, 0.0], [1e-60, 3e-60, 2e-60], [1e80, -1e80, 3e79], [0, 1, 1e9]],
)
def test_awkward_data_have_finite_answers(network: KernelNetwork, y: list[float]) -> None:
    X = torch.rand(len(y), 2, generator=generator(8), dtype=torch.float64)
    fitted = Fitted(network, X, torch.tensor(y, dtype=torch.float64))
    for name in SCORES:
        assert fitted.score(name, Q).isfinite().all()
    assert (fitted.predict(Q).variance > 0).all()


def test_duplicate_points_and_rounding_at_the_faces(network: KernelNetwork) -> None:
    X = torch.tensor([[0.5, 1.0 + 1e-12]] * 6, dtype=torch.float64)
    y = torch.arange(6, dtype=torch.float64)
    fitted = Fitted(network, X, y)
    assert fitted.X.max() == 1.0
    assert fitted.score("jes", Q).isfinite().all()


def test_the_transformer_scores_what_it_predicts() -> None:
    config = TransformerConfig(width=16, layers=2, heads=2, hidden=32, bars=50, gain_bars=20)
    fitted = Fitted(Transformer(config, PRIORS["robust"]).eval(), *data(2, 5), maximise=False)
    for name in SCORES:
        X = Q.clone().requires_grad_()
        (slope,) = torch.autograd.grad(fitted.score(name, X).sum(), X)
        assert slope.isfinite().all()
    assert torch.allclose(fitted.latent(Q).variance, fitted.predict(Q).variance)
    assert fitted.correlation(Q[None], noise=True) is None


GOOD_X, GOOD_Y = torch.full((3, 2), 0.5, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (GOOD_X[:0], "X is empty"),
        (GOOD_X[0], r"matrix of points with d >= 1 columns, not of shape \(2,\)"),
        (GOOD_X[None], r"\(1, 3, 2\)"),
        (GOOD_X[:, :0], r"\(3, 0\)"),
        (GOOD_X.float(), "float64, not torch.float32"),
        (2.0 * GOOD_X + torch.tensor([0.0, 0.1]), r"rows \[0, 1, 2\].*0 to 1.1|1 to 1.1"),
        (GOOD_X - 0.6, "unit cube"),
        (torch.tensor([[0.5, 0.5], [0.5, torch.nan], [0.5, 0.5]]).double(), r"rows \[1\]"),
        (torch.tensor([[0.5, 0.5], [0.5, 0.5], [torch.inf, 0.5]]).double(), r"rows \[2\]"),
    ],
)
def test_bad_points(network: KernelNetwork, X: Tensor, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Fitted(network, X, GOOD_Y)
    if len(X):
        with pytest.raises(DataError, match=message):
            fit_warped(network, X, GOOD_Y, maximise=True)
        with pytest.raises(DataError, match=message.replace("d >= 1", "d = 2")):
            Fitted(network, GOOD_X, GOOD_Y).score("ei", X)


def test_bad_arguments(network: KernelNetwork, fitted: Fitted) -> None:
    with pytest.raises(DataError, match="one value per row"):
        Fitted(network, GOOD_X, GOOD_Y[:2])
    with pytest.raises(DataError, match=r"X_pending must be.* d = 2"):
        Fitted(network, GOOD_X, GOOD_Y, GOOD_X[:, :1])
    with pytest.raises(DataError, match=r"Xq must be.* d = 2"):
        fitted.predict(torch.zeros(4, 3, dtype=torch.float64))
    with pytest.raises(ConfigError, match="must be one of pes, mes, jes, ei"):
        fitted.score("nei", Q)
    with pytest.raises(ConfigError, match="must be one of pes, mes, jes, not 'ei'"):
        fitted.gain_distribution("ei", Q)
    with pytest.raises(ConfigError, match="beta"):
        fitted.score("ucb", Q, beta=-1.0)
    with pytest.raises(ConfigError, match="beta"):
        fitted.score("ucb", Q, beta=float("nan"))
    with pytest.raises(DataError, match="best: must be finite"):
        fitted.score("logei", Q, best=float("nan"))
    with pytest.raises(ConfigError, match=r"network.eval\(\)"):
        Fitted(KernelNetwork(KernelConfig(), PRIORS["robust"]), GOOD_X, GOOD_Y)


@pytest.mark.parametrize("maximise", [True, False])
def test_evidence_is_a_density_of_the_users_values(network: KernelNetwork, maximise: bool) -> None:
    X, y = data(2, 10)
    one = Fitted(network, X, y, maximise=maximise).log_evidence
    thousand = Fitted(network, X, 5.0 + 1e3 * y, maximise=maximise).log_evidence
    assert one is not None
    assert thousand == pytest.approx(one - 10 * math.log(1e3))


def test_noise_is_in_the_units_of_the_user(network: KernelNetwork) -> None:
    X, y = data(2, 30)
    fitted = Fitted(network, X, y)
    share = float(network.noise_sd(fitted.state))
    assert fitted.noise_share == pytest.approx(share)
    assert fitted.noise_sd == pytest.approx(share * float(y.std()), rel=1e-9)
    # Also where it is little next to the values.
    far = Fitted(network, X, 1e6 + y)
    assert far.noise_sd == pytest.approx(share * float(y.std()), rel=1e-3)
