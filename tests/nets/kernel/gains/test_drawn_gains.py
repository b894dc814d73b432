import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.nets.base import GAINS, Hint
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.gains import drawn_gains
from amortes.nets.kernel.gains.drawn_gains import DrawnGains, balanced, given_hint
from amortes.nets.kernel.gains.learned_gains import overlap_entropy
from amortes.nets.kernel.hyperparameters.inference import infer_particles
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig
from amortes.nets.kernel.optimum.max_value import GivenMaximum
from amortes.nets.kernel.optimum.representers import RepresenterConfig
from amortes.nets.kernel.optimum.thompson_draws import thompson_draws
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.random import generator


@pytest.fixture(params=["robust", "real"])
def conditioned(task: TaskBatch, request: pytest.FixtureRequest) -> Conditioned:
    """Four particles."""
    prior = PRIORS[request.param]
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=1))
    return condition(prior, particles, task.X, task.y)


def gains_of(network: KernelNetwork, task: TaskBatch) -> DrawnGains:
    """With all particles."""
    conditioned = network.condition(task.X, task.y).conditioned
    return DrawnGains(conditioned, thompson_draws(conditioned, network.config.landmarks))


@pytest.mark.parametrize("name", ["robust", "real"])
@pytest.mark.parametrize("d", [2, 4])
def test_gains_are_those_of_predictions_with_the_drawn_optima(
    d: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawn_gains, "POINTS", 64)  # all representer points, as in predictions
    # A prediction knows of one optimum only, so that there is nothing to balance.
    monkeypatch.setattr(
        drawn_gains, "balanced", lambda weights, log: (weights + log).log_softmax(1)
    )
    network = KernelNetwork(KernelConfig(encoder=None), PRIORS[name]).eval()
    task = TaskStream(PRIORS[name], 7, TaskConfig(batch_size=3, num_queries=9)).batch_of(0, d, 8)
    found = gains_of(network, task)
    lost = {gain: found.at(gain, task.Xq) for gain in GAINS}
    one_place = GivenMaximum.of
    monkeypatch.setattr(
        GivenMaximum, "of", classmethod(lambda _, c, draws, f: one_place(c, draws, f, places=1))
    )
    state = network.condition(task.X, task.y)

    def entropy(hint: Hint | None) -> Tensor:
        q = network.predict(state, task.Xq, hint)
        parts = (p.movedim(-1, 1).numpy() for p in (q.weights, q.means, q.sds.square()))
        return torch.from_numpy(overlap_entropy(*parts, gradient=False)[0])

    before = entropy(None)
    for s in (0, 7, 15):
        x, f = found.draws.optima.x[:, s], found.draws.optima.f[:, s]
        for gain, hint in zip(GAINS, (Hint(x=x), Hint(f=f), Hint(x, f)), strict=True):
            assert torch.allclose(lost[gain][:, :, s], before - entropy(hint), atol=1e-8)


def test_shapes_and_signs(network: KernelNetwork, task: TaskBatch) -> None:
    found, means = gains_of(network, task), {}
    for name in GAINS:
        gain = found.at(name, task.Xq)
        assert gain.shape == (3, 9, network.config.landmarks.optima)
        assert gain.dtype == torch.float64
        assert gain.isfinite().all()
        means[name] = float(gain.mean())
    assert means["jes"] > means["mes"] > 0
    assert means["jes"] > means["pes"] > 0


@pytest.mark.parametrize("name", GAINS)
def test_gradients_are_finite_differences(
    network: KernelNetwork, task: TaskBatch, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At a face beside a draw of the optimum variances are no more than rounding.
    found, X = gains_of(network, task), task.Xq.clamp(0.05, 0.95)
    value, gradient = found.mean_with_gradient(name, X)
    for i in range(2):
        step = torch.zeros(2, dtype=torch.float64)
        step[i] = 1e-5
        up, down = (found.at(name, X + sign * step).mean(-1) for sign in (1.0, -1.0))
        torch.testing.assert_close(gradient[..., i], (up - down) / 2e-5, rtol=1e-5, atol=1e-6)
    # The same by torch, and with queries one by one.
    monkeypatch.setattr(drawn_gains, "CHUNK", 1)
    Xq = X.clone().requires_grad_()
    mean = found.at(name, Xq).mean(-1)
    torch.testing.assert_close(mean, value)
    torch.testing.assert_close(torch.autograd.grad(mean.sum(), Xq)[0], gradient)


def test_draws_tell_nothing_about_particles_on_average(
    network: KernelNetwork, task: TaskBatch
) -> None:
    found = gains_of(network, task)
    for name in GAINS:
        _, weights = found.given(name)  # the last ones are those without a draw
        assert np.allclose(weights[:, :, :-1].mean(2), weights[:, :, -1], atol=2e-3)
        # Each draw tells something.
        assert np.abs(weights[:, :, :-1] - weights[:, :, -1:]).max() > 0.01


def test_balancing_keeps_what_draws_say_of_each_other() -> None:
    rng = generator(4)
    before = torch.randn(2, 5, 1, generator=rng, dtype=torch.float64).log_softmax(1)
    evidence = 2.0 * torch.randn(2, 5, 32, generator=rng, dtype=torch.float64)
    evidence[:, 0] += 9.0  # in favour of one particle, whatever the draw
    after = balanced(before, evidence)
    assert torch.allclose(after.logsumexp(1).exp(), torch.ones(2, 32, dtype=torch.float64))
    average = after.logsumexp(-1, keepdim=True).exp() / 32
    assert torch.allclose(average, before.exp(), atol=1e-6)
    # Odds ratios, which determine a table together with its margins.
    odds = [table[:, 1:] - table[:, :1] for table in (after, evidence)]
    ours, theirs = (each[..., 1:] - each[..., :1] for each in odds)
    assert torch.allclose(ours, theirs)


def test_only_what_is_asked_for_is_conditioned_on(network: KernelNetwork, task: TaskBatch) -> None:
    state = network.condition(task.X, task.y)
    alone = network.gain(state, task.Xq, ("mes",)).mean
    assert isinstance(state.gains, DrawnGains)
    assert list(state.gains._given) == ["mes"]
    assert torch.allclose(alone, network.gain(state, task.Xq).mean[..., 1:2], rtol=1e-12)


def test_a_place_that_was_certain_tells_nothing() -> None:
    # Rising towards the corner beyond doubt.
    X = torch.linspace(0.0, 1.0, 12, dtype=torch.float64)[None, :, None]
    y = 2.0 * X[..., 0] - 1.0
    particles = infer_particles(PRIORS["robust"], X, y, ParticleConfig(count=1))
    conditioned = condition(PRIORS["robust"], particles, X, y)
    Xq = torch.tensor([0.05, 0.33, 0.77], dtype=torch.float64)[None, :, None]
    at = conditioned.moments(Xq)
    draws = thompson_draws(conditioned, RepresenterConfig())
    hint = Hint(x=torch.ones(1, 1, dtype=torch.float64))
    mean, sd, log_evidence = given_hint(conditioned, Xq, hint, draws)
    heavy = particles.log_weights[0] > -3
    assert torch.allclose(mean[0, heavy, :, 0], at.mean[0, heavy], atol=2e-3)
    assert torch.allclose(sd[0, heavy, :, 0], at.sd[0, heavy], rtol=2e-2)
    evidence = log_evidence[0, heavy].flatten()
    assert float(evidence.max() - evidence.min()) < 0.05


def test_at_the_optimum_itself_nothing_is_left_to_learn(
    conditioned: Conditioned, task: TaskBatch
) -> None:
    x_star = torch.tensor([[0.4, 0.6]] * 3, dtype=torch.float64)
    f_star = task.optimum.f
    draws = thompson_draws(conditioned, RepresenterConfig())
    mean, sd, _ = given_hint(conditioned, x_star[:, None], Hint(x_star, f_star), draws)
    assert torch.allclose(mean[..., 0, 0], f_star[:, None].expand(3, 4), atol=1e-3)
    assert sd.max() < 0.01


def test_gradients_are_finite_everywhere(conditioned: Conditioned, task: TaskBatch) -> None:
    Xq = torch.cat([task.Xq, task.X, task.optimum.x[:, None]], 1).requires_grad_()
    draws = thompson_draws(conditioned, RepresenterConfig())
    for hint in (
        Hint(x=task.optimum.x),
        Hint(f=task.y.amax(1) - 3.0),
        Hint(task.optimum.x, task.optimum.f),
        Hint(task.optimum.x, task.optimum.f - 3.0),
    ):
        mean, sd, _ = given_hint(conditioned, Xq, hint, draws)
        (mean.sum() + sd.log().sum()).backward()  # type: ignore[no-untyped-call]
        assert Xq.grad is not None
        assert Xq.grad.isfinite().all()
        Xq.grad = None


def test_averages_are_those_over_draws(network: KernelNetwork, task: TaskBatch) -> None:
    found, Xq = gains_of(network, task), task.Xq.numpy()
    for name in GAINS:
        known = found.averages(name, Xq)
        given, weights = found.given(name)
        (_, _, mean, variance), _ = given.forward(Xq)
        w = weights[:, :, :-1, 0]
        torch.testing.assert_close(torch.from_numpy(known.gain), found.mean(name, task.Xq))
        for ours, each in ((known.mean, mean), (known.variance, variance)):
            expected = np.einsum("bks,bksq->bkq", w, each) / w.sum(-1, keepdims=True)
            np.testing.assert_allclose(ours, expected)
        np.testing.assert_allclose(
            known.joint, np.einsum("bis,bjs->bij", w, w) / w.shape[-1], atol=1e-12
        )
