import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from amortes.errors import ConfigError, DataError
from amortes.nets.base import GAINS, Hint
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.nets.kernel import network as module
from amortes.nets.kernel.gains.drawn_gains import DrawnGains
from amortes.nets.kernel.hyperparameters.encoder import propose
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig
from amortes.nets.kernel.network import WORTH_ASKING, KernelState
from amortes.nets.kernel.optimum.representers import RepresenterConfig
from amortes.prior.gp import PRIORS, GPPrior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.training.distributed import take_rows

REAL = dataclasses.replace(PRIORS["real"], max_dim=20)


def hints(task: TaskBatch) -> list[Hint | None]:
    o = task.optimum
    return [None, Hint(x=o.x), Hint(f=o.f), Hint(o.x, o.f)]


@pytest.mark.parametrize("noise", [True, False])
def test_predictions_are_mixtures_over_particles(
    network: KernelNetwork, task: TaskBatch, noise: bool
) -> None:
    state = network.condition(task.X, task.y)
    predicted = (network.predict if noise else network.latent)(state, task.Xq)
    particles = state.conditioned.particles
    at = state.conditioned.moments(task.Xq)
    w = particles.log_weights.exp()[..., None]
    variance = at.variance
    if noise:
        variance = variance + particles.hyper.noise_sd.square()[..., None]
    mean = (w * at.mean).sum(1)
    assert torch.allclose(predicted.mean, mean)
    total = (w * (variance + (at.mean - mean[:, None]).square())).sum(1)
    assert torch.allclose(predicted.variance, total)
    assert torch.allclose(network.mean(state, task.Xq), mean)
    observed = (w * state.conditioned.moments(task.X).mean).sum(1)
    assert torch.allclose(network.observed_mean(state), observed, atol=1e-7)


def test_an_encoder_changes_where_to_look_not_what_is_found(
    monkeypatch: pytest.MonkeyPatch, task: TaskBatch
) -> None:
    monkeypatch.setattr(module, "WORTH_ASKING", 1)
    prior = PRIORS["real"]
    many = ParticleConfig(count=256)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        guessing = KernelNetwork(KernelConfig(particles=many), prior).eval()
    plain = KernelNetwork(KernelConfig(particles=many, encoder=None), prior).eval()
    a, b = (n.predict(n.condition(task.X, task.y), task.Xq) for n in (guessing, plain))
    assert ((a.mean - b.mean).abs() < 0.15 * b.sd).all()
    assert ((a.sd / b.sd).log().abs() < 0.15).all()
    assert not torch.equal(a.means, b.means)  # it was asked
    assert not any(True for _ in plain.parameters())


@pytest.mark.parametrize("n", [WORTH_ASKING - 1, WORTH_ASKING])
def test_the_encoder_is_asked_from_enough_points_on(
    monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    prior = PRIORS["real"]
    asked, real = [], propose

    def counted(*args: Any) -> Any:
        asked.append(args)
        return real(*args)

    monkeypatch.setattr(module, "propose", counted)
    task = TaskStream(prior, 5, TaskConfig(batch_size=1, num_queries=1)).batch_of(0, 2, n)
    KernelNetwork(KernelConfig(), prior).eval().condition(task.X, task.y)
    assert len(asked) == (n >= WORTH_ASKING)


def test_what_it_knows_beyond_predictions(network: KernelNetwork, task: TaskBatch) -> None:
    state = network.condition(task.X, task.y)
    conditioned = state.conditioned
    w = conditioned.weights[..., None]
    at, at_x = conditioned.moments(task.Xq), conditioned.moments(task.X[:, :1])
    gained = network.improvement(state, task.Xq, task.X[:, 0])
    assert torch.allclose(gained.mean, (w * (at.mean - at_x.mean)).sum(1))
    cov = conditioned.covariance(at, at)
    sd = cov.diagonal(dim1=-2, dim2=-1).sqrt()
    expected = (w[..., None] * cov / (sd[..., :, None] * sd[..., None, :])).sum(1)
    found = network.correlation(state, task.Xq, noise=False)
    assert torch.allclose(found, expected, atol=1e-6)
    assert torch.equal(found.diagonal(dim1=-2, dim2=-1), torch.ones(3, 9, dtype=torch.float64))
    noisy = network.correlation(state, task.Xq, noise=True)
    sd = (sd.square() + conditioned.noise_variance[..., None]).sqrt()
    expected = (w[..., None] * cov / (sd[..., :, None] * sd[..., None, :])).sum(1)
    off = ~torch.eye(9, dtype=torch.bool)
    assert torch.allclose(noisy[:, off], expected[:, off], atol=1e-6)
    assert network.lengthscale(state).shape == (3, 2)
    variance = (conditioned.weights * conditioned.particles.hyper.noise_sd.square()).sum(1)
    assert torch.allclose(network.noise_sd(state), variance.sqrt())
    mean, spread = network.rough_moments(state, task.Xq)
    exact = network.latent(state, task.Xq)
    assert ((mean - exact.mean).abs() < 0.5 * exact.sd).all()
    assert ((spread / exact.sd).log().abs() < 0.8).all()


def test_batches_equal_single_datasets_and_states_can_be_reused(
    network: KernelNetwork, task: TaskBatch
) -> None:
    whole = network.condition(task.X, task.y)
    for i in range(len(task.X)):
        one = take_rows(task, slice(i, i + 1))
        alone = network.condition(one.X, one.y)
        for _ in range(2):
            for hint, single in zip(hints(task), hints(one), strict=True):
                a = network.predict(whole, task.Xq, hint)[i : i + 1]
                b = network.predict(alone, one.Xq, single)
                assert torch.allclose(a.mean, b.mean, atol=1e-6)
                assert torch.allclose(a.variance, b.variance, atol=1e-6)
            gain = network.gain(whole, task.Xq)[i : i + 1]
            assert torch.allclose(gain.mean, network.gain(alone, one.Xq).mean, atol=1e-6)


def test_queries_do_not_see_each_other_and_row_order_does_not_matter(
    network: KernelNetwork, task: TaskBatch
) -> None:
    state = network.condition(task.X, task.y)
    order = torch.randperm(7, generator=torch.Generator().manual_seed(0))
    shuffled = network.condition(task.X[:, order], task.y[:, order])
    for call in (network.predict, network.gain):
        whole = call(state, task.Xq).mean
        assert torch.allclose(whole[:, :2], call(state, task.Xq[:, :2]).mean, atol=1e-6)
        assert torch.allclose(whole, call(shuffled, task.Xq).mean, atol=1e-4)


def test_gradients_in_the_queries(network: KernelNetwork, task: TaskBatch) -> None:
    state = network.condition(task.X, task.y)
    Xq = task.Xq[:, :3].clone().requires_grad_()

    def value(X: Tensor) -> Tensor:
        return network.gain(state, X).mean.sum() + network.predict(state, X).mean.sum()

    (gradient,) = torch.autograd.grad(value(Xq), Xq)
    # Finite differences through float32 layers: a coarse step and a coarse tolerance.
    h = 1e-3
    for i, j, k in ((0, 0, 0), (1, 2, 1), (2, 1, 0)):
        up, down = Xq.detach().clone(), Xq.detach().clone()
        up[i, j, k] += h
        down[i, j, k] -= h
        slope = (value(up) - value(down)) / (2 * h)
        assert float(gradient[i, j, k]) == pytest.approx(float(slope.detach()), rel=0.1, abs=0.05)


def test_a_state_made_in_inference_mode_has_gradients_later(
    network: KernelNetwork, task: TaskBatch
) -> None:
    def value(state: KernelState, X: Tensor) -> Tensor:
        parts = [network.predict(state, X, hint).variance for hint in hints(task)]
        return network.gain(state, X).mean.sum() + torch.stack(parts).sum()

    with torch.inference_mode():
        state = network.condition(task.X.clone(), task.y.clone(), task.X[:, :2] / 2)
        value(state, task.Xq)
    fresh = network.condition(task.X, task.y, task.X[:, :2] / 2)
    gradients: list[Tensor] = []
    for one in (state, fresh):
        Xq = task.Xq.clone().requires_grad_()
        gradients += torch.autograd.grad(value(one, Xq), Xq)
    assert torch.equal(*gradients)


def test_memory_of_the_caller_can_be_used_again(network: KernelNetwork, task: TaskBatch) -> None:
    buffers = task.X.clone(), task.y.clone(), task.X[:, :2] / 2
    state = network.condition(*buffers)
    for buffer in buffers:
        buffer.fill_(0.5)
    fresh = network.condition(task.X, task.y, task.X[:, :2] / 2)
    for hint in hints(task):
        ours, theirs = (network.predict(s, task.Xq, hint) for s in (state, fresh))
        assert torch.equal(ours.means, theirs.means)
        assert torch.equal(ours.sds, theirs.sds)


def test_other_pending_points_are_as_if_conditioned_anew(
    network: KernelNetwork, task: TaskBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    pendings = [None, task.Xq[:, :1], task.Xq[:, 1:4], task.X[:, :2]]
    fresh = [network.condition(task.X, task.y, pending) for pending in pendings]
    monkeypatch.delattr(module, "infer")
    for start in (fresh[0], fresh[2]):
        for pending, expected in zip(pendings, fresh, strict=True):
            state = network.with_pending(start, pending)
            for hint in hints(task):
                ours, theirs = (network.predict(s, task.Xq, hint) for s in (state, expected))
                torch.testing.assert_close(ours.means, theirs.means, rtol=1e-8, atol=1e-8)
                torch.testing.assert_close(ours.sds, theirs.sds, rtol=1e-8, atol=1e-8)
            gains = (network.gain(s, task.Xq).mean for s in (state, expected))
            torch.testing.assert_close(*gains, rtol=1e-6, atol=1e-8)


def test_nothing_observed_or_asked_is_explained(network: KernelNetwork, task: TaskBatch) -> None:
    with pytest.raises(DataError, match=r"X: needs an observation, but has shape \(3, 0, 2\)"):
        network.condition(task.X[:, :0], task.y[:, :0])
    state = network.condition(task.X, task.y)
    for call in (network.predict, network.gain):
        with pytest.raises(DataError, match=r"Xq: needs a query, but has shape \(3, 0, 2\)"):
            call(state, task.Xq[:, :0])


def test_dtypes_are_kept_and_no_random_numbers_are_drawn(
    network: KernelNetwork, task: TaskBatch
) -> None:
    random = torch.get_rng_state()
    for dtype in (torch.float32, torch.float64):
        state = network.condition(task.X.to(dtype), task.y.to(dtype))
        for hint in hints(task):
            assert network.predict(state, task.Xq.to(dtype), hint).mean.dtype == dtype
        assert network.gain(state, task.Xq.to(dtype)).mean.dtype == dtype
    assert torch.equal(torch.get_rng_state(), random)


@pytest.mark.parametrize(
    "case",
    ["one", "many", "high-d", "duplicates", "constant", "noise-free", "noisy", "far", "pool",
     "converged"],
)  # fmt: skip
@pytest.mark.parametrize("prior", [GPPrior(max_dim=20), REAL], ids=["plain", "real"])
def test_hard_data(case: str, prior: GPPrior) -> None:
    network = KernelNetwork(KernelConfig(encoder=None), prior).eval()
    rng = torch.Generator().manual_seed(2)
    sizes = {"one": (1, 1), "many": (300, 3), "high-d": (40, 20), "converged": (120, 1)}
    n, d = sizes.get(case, (12, 2))
    X = torch.rand(1, n, d, generator=rng, dtype=torch.float64)
    if case == "converged":
        X[:, 40:] = 0.3 + 1e-4 * X[:, 40:]
    y = (6 * X).sin().sum(-1)
    if case == "duplicates":
        X = X[:, :3].repeat(1, 4, 1)
        y = y[:, :3].repeat(1, 4)
    if case == "constant":
        y = torch.zeros_like(y)
    if case == "noisy":
        y = 5 * torch.randn(1, n, generator=rng, dtype=torch.float64)
    if case == "far":
        y = y + 50
    if case == "pool":
        X = X.round()
    state = network.condition(X, y, (X[:, :1] + 0.1).clamp_max(1.0))
    Xq = torch.cat([X[:, :4], torch.rand(1, 8, d, generator=rng, dtype=torch.float64)], dim=1)
    Xq.requires_grad_()
    x_star, f_star = torch.ones(1, d, dtype=torch.float64), y.amax(1) + 0.1
    for hint in (None, Hint(x=x_star), Hint(f=f_star), Hint(x_star, f_star)):
        predictive = network.predict(state, Xq, hint)
        assert predictive.mean.isfinite().all()
        assert (predictive.variance > 0).all()
        assert predictive.entropy().isfinite().all()
        (slope,) = torch.autograd.grad(predictive.variance.log().sum(), Xq)
        assert slope.isfinite().all()
    gain = network.gain(state, Xq).mean
    assert gain.isfinite().all()
    (slope,) = torch.autograd.grad(gain.sum(), Xq)
    assert slope.isfinite().all()


def test_gains_are_those_of_the_draws(network: KernelNetwork, task: TaskBatch) -> None:
    state = network.condition(task.X, task.y)
    gain = network.gain(state, task.Xq)
    assert gain.batch_shape == (3, 9, 3)
    assert (gain.mean > -0.01).all()  # few draws: nothing may look like a small loss
    for i, name in enumerate(GAINS):
        expected = network.expected_gain(state, task.Xq, name)
        assert torch.allclose(gain.mean[..., i], expected)
        assert isinstance(state.gains, DrawnGains)
        draws = state.gains.at(name, task.Xq)
        spread = draws.var(-1, unbiased=False)
        width = (module.GAIN_WIDTH * draws.abs().mean(-1)).square()
        assert torch.allclose(gain.variance[..., i], spread + width, rtol=1e-6)


def test_few_points_and_many_particles_are_enough_for_gains(task: TaskBatch) -> None:
    config = KernelConfig(
        particles=ParticleConfig(count=32),
        landmarks=RepresenterConfig(count=8, draws=4, optima=3),
        encoder=None,
    )
    network = KernelNetwork(config, PRIORS["robust"]).eval()
    state = network.condition(task.X, task.y)
    assert network.gain(state, task.Xq).mean.isfinite().all()
    gains = state.gains
    assert isinstance(gains, DrawnGains)
    # A few stand for all.
    few, all_ = (c.particles for c in (gains.conditioned, state.conditioned))
    assert few.log_weights.shape == (3, module.DRAWN_PARTICLES)
    for name in ("output_variance", "noise_sd"):
        mean, exact = ((p.log_weights.exp() * getattr(p.hyper, name)).sum(1) for p in (few, all_))
        assert torch.allclose(mean, exact, rtol=0.2)


def test_the_encoder_is_the_base(task: TaskBatch) -> None:
    network = KernelNetwork(KernelConfig(), PRIORS["real"])
    assert network.encoder is not None
    base = {id(p) for p in network.base_parameters()}
    assert base == {id(p) for p in network.parameters()}
    assert list(network.alpha_parameters()) == []
    assert not network.needs_alpha
    loss = network.inference_loss(task.X, task.y, task.hyper)
    loss["loss"].backward()  # type: ignore[no-untyped-call]
    without = KernelNetwork(KernelConfig(encoder=None), PRIORS["real"])
    assert list(without.parameters()) == []
    with pytest.raises(ConfigError, match=r"config\.encoder"):
        without.inference_loss(task.X, task.y, task.hyper)
