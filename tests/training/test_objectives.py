import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from amortes.nets.base import GAINS, Hint
from amortes.nets.distributions import Predictive
from amortes.prior.gp import Hyperparameters, named_prior
from amortes.prior.posterior import exact_posterior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.training.distributed import place, take_rows
from amortes.training.objectives import (
    HINTS,
    alpha_loss,
    base_loss,
    gain_targets,
    hint_for,
    posterior_optima,
    query_mean,
    summarise,
)
from tests.training.fake import FakeNetwork


@pytest.fixture
def network(network: FakeNetwork) -> FakeNetwork:
    return network.double()


@pytest.fixture
def task(task: TaskBatch) -> TaskBatch:
    """One with a query near the optimum in each dataset but one."""
    near = torch.zeros_like(task.near_optimum)
    near[1:, 0] = True
    return dataclasses.replace(task, near_optimum=near)


def cross_entropy(q: Predictive, mean: Tensor, variance: Tensor) -> Tensor:
    """- E[log q(y)] for y ~ N(mean, variance), by quadrature of log_prob alone."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    total = torch.zeros_like(mean)
    for z, w in zip(nodes, weights / math.sqrt(2 * math.pi), strict=True):
        total -= w * q.log_prob(mean + variance.sqrt() * z)
    return total


def average(values: Tensor, counts: Tensor) -> float:
    """Mean over datasets of the mean over queries that count, the slow way."""
    rows = [float(values[i][counts[i]].detach().mean()) for i in range(len(values))]
    return sum(rows) / len(rows)


@pytest.mark.parametrize("name", HINTS)
def test_excess_of_each_conditioning(network: FakeNetwork, task: TaskBatch, name: str) -> None:
    loss, metrics = base_loss(network, task, [name])
    state = network.condition(task.X, task.y)
    variance = task.posterior_variance + task.noise_variance
    entropy = 0.5 * torch.log(2 * math.pi * math.e * variance)
    fair = ~task.near_optimum
    if name == "none":
        target = (task.posterior_mean, variance)
    else:
        target = (task.fq, task.noise_variance.expand_as(task.fq))
    q = network.predict(state, task.Xq, hint_for(task, name))
    counts = fair if name in ("none", "f") else torch.ones_like(fair)
    expected = average(cross_entropy(q, *target) - entropy, counts)
    assert float(metrics[f"excess_{name}"]) == pytest.approx(expected, rel=1e-4)
    assert float(loss.detach()) == float(metrics["loss"]) == float(metrics[f"excess_{name}"])


def test_targets_are_the_expectation_of_draws(network: FakeNetwork, task: TaskBatch) -> None:
    # Rao-Blackwell: the loss is the mean of -log q(y) over noisy draws of y.
    _, metrics = base_loss(network, task, ["f"])
    q = network.predict(network.condition(task.X, task.y), task.Xq, Hint(f=task.optimum.f))
    rng = torch.Generator().manual_seed(0)
    sd = task.noise_variance.sqrt()
    draws = torch.stack(
        [
            -q.log_prob(task.fq + sd * torch.randn(task.fq.shape, generator=rng).double())
            for _ in range(2000)
        ]
    )
    variance = task.posterior_variance + task.noise_variance
    excess = draws - 0.5 * torch.log(2 * math.pi * math.e * variance)
    means = torch.tensor([average(row, ~task.near_optimum) for row in excess])
    error = float(means.std()) / math.sqrt(len(means))
    assert float(metrics["excess_f"]) == pytest.approx(float(means.mean()), abs=4 * error)


def test_loss_is_the_mean_over_conditionings(network: FakeNetwork, task: TaskBatch) -> None:
    loss, metrics = base_loss(network, task)
    each = [float(base_loss(network, task, [name])[0].detach()) for name in HINTS]
    assert float(loss.detach()) == pytest.approx(sum(each) / 4)
    assert [float(metrics[f"excess_{name}"]) for name in HINTS] == pytest.approx(each)


def test_hints_are_the_true_optimum(task: TaskBatch) -> None:
    both = hint_for(task, "both")
    assert both is not None
    assert both.x is task.optimum.x
    assert both.f is task.optimum.f
    only_x, only_f = hint_for(task, "x"), hint_for(task, "f")
    assert only_x is not None
    assert only_x.f is None
    assert only_f is not None
    assert only_f.x is None
    assert hint_for(task, "none") is None


def test_query_near_the_optimum_counts_only_with_x(network: FakeNetwork, task: TaskBatch) -> None:
    moved = task.fq.clone()
    moved[task.near_optimum] += 1.0
    mean = task.posterior_mean.clone()
    mean[task.near_optimum] += 1.0
    other = dataclasses.replace(task, fq=moved, posterior_mean=mean)
    _, before = base_loss(network, task)
    _, after = base_loss(network, other)
    changed = {name for name in before if float(before[name]) != float(after[name])}
    assert changed == {"loss", "excess_x", "excess_both"}


def test_dataset_without_a_fair_query_counts_nothing(network: FakeNetwork, task: TaskBatch) -> None:
    blind = dataclasses.replace(task, near_optimum=torch.ones_like(task.near_optimum))
    loss, _ = base_loss(network, blind, ["none"])
    assert float(loss.detach()) == 0.0
    assert float(alpha_loss(network, blind)[0].detach()) == 0.0


def test_pending_keeps_visible_mean_and_full_variance(
    network: FakeNetwork, task: TaskBatch
) -> None:
    _, metrics = base_loss(network, task, num_pending=2)
    assert metrics.keys() == {"loss", "excess_pending"}
    seen = task.X[:, :3], task.y[:, :3]
    mean, _ = exact_posterior(network.prior.kernel, task.hyper, *seen, task.Xq)
    variance = task.posterior_variance + task.noise_variance
    q = network.predict(network.condition(*seen, task.X[:, 3:]), task.Xq)
    excess = cross_entropy(q, mean, variance) - 0.5 * torch.log(2 * math.pi * math.e * variance)
    expected = average(excess, ~task.near_optimum)
    assert float(metrics["excess_pending"]) == pytest.approx(expected, rel=1e-4)


def test_gain_targets_are_entropy_differences(network: FakeNetwork, task: TaskBatch) -> None:
    state = network.condition(task.X, task.y)
    (targets,) = gain_targets(network, task, posterior_optima(network.prior, task, 1))
    assert targets.shape == (*task.fq.shape, 3)
    assert not targets.requires_grad
    x, f = task.optimum.x, task.optimum.f
    before = network.predict(state, task.Xq).entropy()
    for i, hint in enumerate((Hint(x=x), Hint(f=f), Hint(x=x, f=f))):
        after = network.predict(state, task.Xq, hint).entropy()
        torch.testing.assert_close(targets[..., i], (before - after).detach())


def test_alpha_loss_and_its_metrics(network: FakeNetwork, task: TaskBatch) -> None:
    loss, metrics = alpha_loss(network, task)
    state = network.condition(task.X, task.y)
    (targets,) = gain_targets(network, task, posterior_optima(network.prior, task, 1))
    gain = network.gain(state, task.Xq)
    fair = ~task.near_optimum
    assert float(loss.detach()) == pytest.approx(average(-gain.log_prob(targets).mean(-1), fair))
    for i, name in enumerate(GAINS):
        wanted, got = targets[..., i], gain.mean[..., i]
        assert float(metrics[f"{name}_target"]) == pytest.approx(average(wanted, fair))
        error = average((got - wanted).square(), fair)
        spread = average(wanted.square(), fair) - average(wanted, fair) ** 2
        summary = summarise({key: float(value) for key, value in metrics.items()})
        assert summary[f"{name}_r2"] == pytest.approx(1 - error / spread)
    assert summary.keys() == {"loss"} | {f"{g}_{what}" for g in GAINS for what in ("target", "r2")}


def test_targets_of_several_optima(network: FakeNetwork, task: TaskBatch) -> None:
    optima = posterior_optima(network.prior, task, 5)
    draws = gain_targets(network, task, optima)
    assert draws.shape == (5, *task.fq.shape, 3)
    state = network.condition(task.X, task.y)
    for s in range(5):
        hint = Hint(x=optima.x[:, s], f=optima.f[:, s])
        expected = network.predict(state, task.Xq).entropy()
        expected = expected - network.predict(state, task.Xq, hint).entropy()
        torch.testing.assert_close(draws[s, ..., 2], expected.detach())
    loss, _ = alpha_loss(network, task, num_optima=5)
    gain = network.gain(state, task.Xq)
    expected_loss = average(-gain.log_prob(draws).mean((0, -1)), ~task.near_optimum)
    assert float(loss.detach()) == pytest.approx(expected_loss)


def test_the_true_optimum_is_like_the_draws() -> None:
    # Its rank among them is uniform, in value and in place, if it is one more.
    stream = TaskStream(named_prior("paper"), 5, TaskConfig(batch_size=64, num_queries=1))
    for d, n in ((1, 4), (2, 8)):
        task = stream.batch_of(0, d, n)
        optima = posterior_optima(stream.prior, task, 31)
        assert optima.x.shape == (64, 31, d)
        assert ((optima.x >= 0.0) & (optima.x <= 1.0)).all()
        truth = torch.cat([task.optimum.x, task.optimum.f[:, None]], dim=1)
        draws = torch.cat([optima.x, optima.f[..., None]], dim=2)
        below = (draws < truth[:, None]).double().mean(1)
        below = below + 0.5 * (draws == truth[:, None]).double().mean(1)  # on faces
        assert ((below.mean(0) - 0.5).abs() < 4.0 * 0.29 / 8.0).all()
        assert (below.std(0) > 0.15).all()


def test_a_network_may_have_a_base_loss_of_its_own(
    network: FakeNetwork, task: TaskBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def own(X: Tensor, y: Tensor, hyper: Hyperparameters) -> dict[str, Tensor]:
        seen.append((X, y, hyper))
        term = (X.sum() * next(network.base_parameters()).sum()).square()
        return {"loss": 2.0 * term, "term": term}

    monkeypatch.setattr(network, "inference_loss", own)
    loss, metrics = base_loss(network, task)
    assert seen == [(task.X, task.y, task.hyper)]
    assert loss.requires_grad
    assert metrics.keys() == {"loss", "term"}
    assert not metrics["term"].requires_grad
    assert torch.equal(metrics["loss"], loss.detach())


def test_alpha_learns_gains_of_known_y_from_hidden_y(network: FakeNetwork, task: TaskBatch) -> None:
    loss, _ = alpha_loss(network, task, num_pending=2)
    (targets,) = gain_targets(network, task, posterior_optima(network.prior, task, 1))
    hidden = network.condition(task.X[:, :3], task.y[:, :3], task.X[:, 3:])
    gain = network.gain(hidden, task.Xq)
    expected = average(-gain.log_prob(targets).mean(-1), ~task.near_optimum)
    assert float(loss.detach()) == pytest.approx(expected)


def test_alpha_gradient_reaches_alpha_only(network: FakeNetwork, task: TaskBatch) -> None:
    alpha_loss(network, task)[0].backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is None for p in network.base_parameters())
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in network.alpha_parameters())


@pytest.mark.parametrize("loss", [base_loss, alpha_loss])
def test_shares_of_a_batch_average_to_the_whole(
    network: FakeNetwork, task: TaskBatch, loss: Any
) -> None:
    _, whole = loss(network, task)
    _, first = loss(network, take_rows(task, slice(0, 1)))
    _, rest = loss(network, take_rows(task, slice(1, 4)))
    for name, value in whole.items():
        mixed = 0.25 * float(first[name]) + 0.75 * float(rest[name])
        assert float(value) == pytest.approx(mixed), name


def test_float32_is_kept(network: FakeNetwork, task: TaskBatch) -> None:
    network.float()
    small = place(task, torch.device("cpu"), torch.float32)
    for loss, _ in (base_loss(network, small), base_loss(network, small, num_pending=1)):
        assert loss.dtype == torch.float32
    assert alpha_loss(network, small)[0].dtype == torch.float32


def test_queries_that_do_not_count_are_left_out() -> None:
    values = torch.tensor([[1.0, 2.0, torch.nan], [5.0, torch.inf, 7.0], [1.0, 1.0, 1.0]])
    counts = torch.tensor([[True, True, False], [False, False, True], [False, False, False]])
    assert query_mean(values, counts).tolist() == [1.5, 7.0, 0.0]
