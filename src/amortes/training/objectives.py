"""What the two stages minimise.

**Base.** Cross-entropy of the network's predictive distribution q against a Gaussian target, which
is known where others draw one y (Rao-Blackwell): with m, v the exact posterior under the true
hyperparameters of the dataset and s^2 its noise variance,

    without a hint      CE( N(m(x), v(x) + s^2), q(. | D, x) )
    with hint I         CE( N(f(x), s^2),        q(. | D, x, I) ),    I = x*, f*, or both.

Averaged over datasets the targets have the distribution of y that q should learn. All are reported
less the entropy of N(m, v + s^2), so that 0 is what someone scores who knows the hyperparameters.

**Alpha.** The frozen base gives the gain of the true optimum at x, one draw of it per dataset,

    a_I(x) = H[q(. | D, x)] - H[q(. | D, x, I)],

and the alpha network learns the distribution of a_I given D and x, by maximum likelihood; the mean
of that distribution is the acquisition function. One draw is a noisy target. More can be had of the
exact posterior under the true hyperparameters: with each of them the function could as well have
been another one that has its optimum there.

A kernel network learns what many draws of the optimum say of a dataset on average (`lessons`), by
the weights M of pairs of particles (Kullback-Leibler divergence), by the moments of f given the
optimum, and by the gains that follow: their size (Huber's loss, in standard deviations over the
queries) and their order (the divergence of softmaxes).

**Queries near the optimum.** A query placed by looking at x* gives x* away. Those count only where
the network is told x* anyway.

**Pending points**, the last p of the context, lose their y. The base then has to keep the mean of
the others and the variance of all: N(m_visible, v_all + s^2), without a hint only, since the
optimum belongs to another function than the one whose values are believed. The alpha target is the
gain with y known, so that its mean is E[gain | x_pending], y_pending averaged out.

References: Rakotoarison et al. (ICML 2026), "α-PFN: Fast Entropy Search via In-Context Learning".
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from amortes.nets.base import GAINS, Hint, Network
from amortes.nets.kernel import KernelNetwork
from amortes.nets.kernel.conditioning import condition
from amortes.nets.kernel.hyperparameters.particles import Particles
from amortes.nets.kernel.optimum.representers import RepresenterConfig
from amortes.nets.kernel.optimum.thompson_draws import thompson_draws
from amortes.prior.gp import GPPrior
from amortes.prior.newton import Optimum
from amortes.prior.posterior import exact_posterior
from amortes.prior.tasks import TaskBatch
from amortes.training.lessons import Lesson

# Of the terms of the loss of lessons.
WEIGHTS = {"pairs": 1.0, "variance": 0.3, "mean": 1.0, "size": 1.0, "order": 1.0}
# Gains in nats below which their order is noise, and their least unit.
NO_GAIN, SMALLEST_UNIT = 5e-3, 1e-3
SMALL, FAR_OFF = 1e-6, 10.0
HINTS = ("none", "x", "f", "both")
"""What the base network may be told; the last three in the order of `GAINS`."""

Metrics = dict[str, Tensor]
"""Scalars without gradient, each a mean over datasets: shares of a batch average to the whole."""


def hint_for(task: TaskBatch, name: str) -> Hint | None:
    """The named part of the task's true optimum."""
    optimum = task.optimum
    hints = {"x": Hint(x=optimum.x), "f": Hint(f=optimum.f), "both": Hint(optimum.x, optimum.f)}
    return hints.get(name)


def base_loss(
    network: Network[Any], task: TaskBatch, hints: Sequence[str] = HINTS, num_pending: int = 0
) -> tuple[Tensor, Metrics]:
    """Mean excess cross-entropy over the conditionings `hints`; metrics hold each of them.

    With pending points the one conditioning is `none`, reported as `excess_pending`. A network that
    learns to infer hyperparameters instead has a loss of its own.
    """
    own = network.inference_loss(task.X, task.y, task.hyper)
    if own is not None:
        return own["loss"], {name: value.detach() for name, value in own.items()}
    noise = task.noise_variance.to(task.fq)
    predictive_variance = task.posterior_variance + noise
    target_entropy = 0.5 * (2 * math.pi * math.e * predictive_variance).log()
    fair = ~task.near_optimum
    if num_pending:
        hints = ("pending",)
        state, mean = _hide(network, task, num_pending), _visible_mean(network, task, num_pending)
    else:
        state, mean = network.condition(task.X, task.y), task.posterior_mean
    excess = {}
    for label in hints:
        hint = hint_for(task, label)
        q = network.predict(state, task.Xq, hint)
        if hint is None:
            cross_entropy = q.cross_entropy(mean, predictive_variance)
        else:
            cross_entropy = q.cross_entropy(task.fq, noise.expand_as(task.fq))
        told_place = hint is not None and hint.x is not None
        counts = torch.ones_like(fair) if told_place else fair
        excess[f"excess_{label}"] = _mean(cross_entropy - target_entropy, counts)
    loss = torch.stack(list(excess.values())).mean()
    return loss, {name: value.detach() for name, value in {"loss": loss, **excess}.items()}


@torch.no_grad()
def gain_targets(network: Network[Any], task: TaskBatch, optima: Optimum) -> Tensor:
    """Entropy that each optimum takes off the base's predictions: `s x b x q x 3`, as `GAINS`.

    Optima: x `b x s x d`, f `b x s`.
    """
    before = network.predict(network.condition(task.X, task.y), task.Xq).entropy()  # b x q
    b, s = optima.f.shape
    X, y, Xq = (t.repeat_interleave(s, dim=0) for t in (task.X, task.y, task.Xq))
    x, f = optima.x.flatten(0, 1).to(X), optima.f.flatten().to(X)
    state = network.condition(X, y)
    hints = Hint(x=x), Hint(f=f), Hint(x=x, f=f)
    after = torch.stack([network.predict(state, Xq, hint).entropy() for hint in hints], dim=-1)
    return before[..., None] - after.reshape(b, s, *after.shape[1:]).transpose(0, 1)


@torch.no_grad()
def posterior_optima(prior: GPPrior, task: TaskBatch, count: int) -> Optimum:
    """The true optimum or, of more than one, draws under the true hyperparameters.

    x `b x count x d`, f `b x count`.
    """
    if count == 1:
        return Optimum(task.optimum.x[:, None], task.optimum.f[:, None])
    X, y = task.X.double().cpu(), task.y.double().cpu()
    hyper = task.hyper.map(lambda t: t.double().cpu()[:, None])
    known = X.new_zeros(len(X), 1)
    conditioned = condition(prior, Particles(hyper, known, known[:, 0]), X, y)
    return thompson_draws(conditioned, RepresenterConfig(optima=count)).optima


def alpha_loss(
    network: Network[Any],
    task: TaskBatch,
    num_pending: int = 0,
    num_optima: int = 1,
) -> tuple[Tensor, Metrics]:
    """Mean negative log-likelihood of the gains; `summarise` turns the metrics into R^2.

    That is of the mean over draws.
    """
    draws = gain_targets(network, task, posterior_optima(network.prior, task, num_optima))
    data = (task.X, task.y)
    state = _hide(network, task, num_pending) if num_pending else network.condition(*data)
    gain = network.gain(state, task.Xq)
    fair = ~task.near_optimum
    loss = _mean(-gain.log_prob(draws).mean((0, -1)), fair)
    return loss, {"loss": loss.detach(), **_fit(gain.mean, draws.mean(0), fair)}


def _fit(gain: Tensor, targets: Tensor, counts: Tensor) -> Metrics:
    """What `summarise` makes R^2 of: gains `b x q x 3` and the queries that count."""
    metrics = {}
    error = (gain - targets).detach().square()
    for i, name in enumerate(GAINS):
        metrics[f"{name}_target"] = _mean(targets[..., i], counts)
        metrics[f"{name}_square"] = _mean(targets[..., i].square(), counts)
        metrics[f"{name}_error"] = _mean(error[..., i], counts)
    return metrics


def lesson_loss(network: Network[Any], lesson: Lesson) -> tuple[Tensor, Metrics]:
    """How far a gain network is from what many draws of the optimum say; see the module."""
    assert isinstance(network, KernelNetwork)
    assert network.gain_network is not None
    own, w = network.gain_network.scale, lesson.weights[:, None, :, None]
    joint = network.gain_network.joint_weights(lesson.pairs.to(own), lesson.weights)
    shift, left = network.gain_network.moments(lesson.queries.to(own))  # b x g x k x q
    noise, known = lesson.noise[:, None, :, None], lesson.variance[:, None]
    mean = lesson.mean[:, None] + shift * known.sqrt()
    variance, told = left * known + noise, lesson.told_variance + noise
    given, true_given = (
        M / M.sum(-1, keepdim=True).clamp_min(SMALL) for M in (joint, lesson.joint)
    )
    before, equal = known + noise, lesson.weights[:, None, None].expand_as(joint)
    H = overlap_entropies(lesson.weights, equal, lesson.mean[:, None], before)
    gain = H - overlap_entropies(lesson.weights, given, mean, variance)  # b x g x q

    target = lesson.gain
    counts = (target.amax(-1) > NO_GAIN).to(target)  # b x g
    unit = target.std(-1, keepdim=True).clamp_min(SMALLEST_UNIT)
    ratio = (true_given + SMALL).log() - (given + SMALL).log()
    of_pairs = (w * true_given * ratio).sum((-1, -2))
    off = (w * (variance / told).log().square()).sum(2) / (2.0 * unit).square()  # b x g x q
    of_variance = off.clamp_max(FAR_OFF).mean(-1)
    of_mean = (w * (mean - lesson.told_mean).square() / before).sum(2).clamp_max(FAR_OFF).mean(-1)
    of_size = nn.functional.huber_loss(gain / unit, target / unit, reduction="none").mean(-1)
    true_odds, odds = (2.0 * t / unit for t in (target, gain))
    of_order = (true_odds.softmax(-1) * (true_odds.log_softmax(-1) - odds.log_softmax(-1))).sum(-1)
    terms = {
        "pairs": of_pairs.mean(),
        "variance": of_variance.mean(),
        "mean": of_mean.mean(),
        "size": (counts * of_size).mean(),
        "order": (counts * of_order).mean(),
    }
    loss = torch.stack([WEIGHTS[name] * term for name, term in terms.items()]).sum()
    every = torch.ones_like(target[:, 0], dtype=torch.bool)
    metrics = {name: term.detach() for name, term in terms.items()}
    return loss, {"loss": loss.detach(), **metrics, **_fit(gain.mT, target.mT, every)}


def overlap_entropies(weights: Tensor, given: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """`learned_gains.overlap_entropy` in torch, but for a constant: `b x g x q`.

    Of weights `b x k`, weights of pairs and moments `b x g x k x q`.
    """
    v1, v2 = variance[:, :, :, None], variance[:, :, None]
    total = v1 + v2
    away = (mean[:, :, :, None] - mean[:, :, None]).square() / total
    overlap = (2.0 * (v1 * v2).sqrt() / total).clamp_max(1.0).sqrt() * (-0.25 * away).exp()
    density = (given[..., None] * overlap).sum(3).clamp_min(SMALL)
    return (weights[:, None, :, None] * (0.5 * variance.log() - density.log())).sum(2)


def summarise(metrics: Mapping[str, float]) -> dict[str, float]:
    """Averaged metrics for people: squared errors become R^2 = 1 - error / variance of target."""
    summary = dict(metrics)
    for name in GAINS:
        if f"{name}_square" in summary:
            variance = summary.pop(f"{name}_square") - summary[f"{name}_target"] ** 2
            error = summary.pop(f"{name}_error")
            summary[f"{name}_r2"] = 1.0 - error / max(variance, 1e-12)
    return summary


def _hide(network: Network[Any], task: TaskBatch, num_pending: int) -> Any:
    """The state when the last points of the context have no value yet."""
    n = task.X.shape[1] - num_pending
    return network.condition(task.X[:, :n], task.y[:, :n], task.X[:, n:])


def _visible_mean(network: Network[Any], task: TaskBatch, num_pending: int) -> Tensor:
    """Posterior mean at the queries, `b x q`, from the points that have values."""
    n = task.X.shape[1] - num_pending
    X, y, Xq = task.X[:, :n].double(), task.y[:, :n].double(), task.Xq.double()
    mean, _ = exact_posterior(network.prior.kernel, task.hyper, X, y, Xq)
    return mean.to(task.Xq)


def query_mean(values: Tensor, counts: Tensor) -> Tensor:
    """Mean of `b x q` over the queries that count, bool of the same shape: `b`."""
    return torch.where(counts, values, 0.0).sum(1) / counts.sum(1).clamp_min(1)


def _mean(values: Tensor, counts: Tensor) -> Tensor:
    """Mean over datasets of `query_mean`: that of a batch is the mean of its ranks' shares."""
    return query_mean(values, counts).mean()
