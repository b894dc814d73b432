import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from amortes.errors import ConfigError
from amortes.nets.kernel.hyperparameters.encoder import (
    FURTHEST,
    SKEWED,
    SKEWS,
    STEPS,
    WEIGHT,
    Encoder,
    EncoderConfig,
    inference_loss,
    inferred,
    standardised,
    to_posterior_order,
)
from amortes.nets.kernel.hyperparameters.hyper_posterior import HyperPosterior, hyperparameters
from amortes.nets.kernel.hyperparameters.particles import find_modes
from amortes.prior.gp import PRIORS, GPPrior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream

PRIOR = PRIORS["real"]
SMALL = EncoderConfig(width=16, layers=2, heads=2)


def encoder(*, random: bool = True, models: int = 2) -> Encoder:
    """A network with repeatable weights; not those that say what the prior says, if `random`."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Encoder(SMALL, models).double()
        for parameter in network.parameters() if random else ():
            torch.nn.init.normal_(parameter, std=0.3)
    return network


def batch(size: int, d: int, n: int, step: int = 0) -> TaskBatch:
    return TaskStream(PRIOR, 7, TaskConfig(batch_size=size, num_queries=0)).batch_of(step, d, n)


def test_untrained_it_says_what_the_prior_says(warped: TaskBatch) -> None:
    found = encoder(random=False)(warped.X, warped.y)
    assert len(found) == 2
    for mean, log_sd in found:
        assert mean.shape == log_sd.shape == (3, 9)
        assert torch.equal(mean, torch.zeros_like(mean))
        assert torch.equal(log_sd, torch.zeros_like(log_sd))


def test_the_order_of_observations_does_not_matter(warped: TaskBatch) -> None:
    network = encoder()
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    for (a, b), (c, d) in zip(
        network(warped.X, warped.y), network(warped.X[:, order], warped.y[:, order]), strict=True
    ):
        assert a.abs().max() > 0.1
        assert torch.allclose(a, c, atol=1e-10)
        assert torch.allclose(b, d, atol=1e-10)


def test_coordinates_may_change_places() -> None:
    task = batch(3, 4, 6)
    network = encoder()
    order = torch.tensor([2, 0, 3, 1])
    for pair, moved in zip(
        network(task.X, task.y), network(task.X[..., order], task.y), strict=True
    ):
        for before, after in zip(pair, moved, strict=True):
            own, shared = before.split([12, 3], dim=-1)
            expected = own.reshape(3, 3, 4)[..., order].flatten(1)
            assert own.reshape(3, 3, 4).std(-1).min() > 1e-4
            assert torch.allclose(after, torch.cat([expected, shared], dim=-1), atol=1e-10)


def test_datasets_of_a_batch_do_not_see_each_other(warped: TaskBatch) -> None:
    network = encoder()
    whole, alone = network(warped.X, warped.y), network(warped.X[1:2], warped.y[1:2])
    assert torch.allclose(whole[1][0][1:2], alone[1][0], atol=1e-10)


def test_outputs_are_bounded(warped: TaskBatch) -> None:
    network = encoder()
    for mean, log_sd in network(warped.X, 1e6 * warped.y):
        assert (mean.abs() <= FURTHEST).all()
        assert ((log_sd >= -4.0) & (log_sd <= 0.5)).all()


def test_targets_are_those_of_standardised_data() -> None:
    task = batch(6, 2, 9)
    y, z = standardised(PRIOR, task.y, task.hyper)
    assert torch.allclose(y.mean(-1), torch.zeros(6, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(y.std(-1), torch.ones(6, dtype=torch.float64))
    # The hyperparameters of z, mapped back, are those of the data less their scale.
    latents = to_posterior_order(PRIOR, z, 2)
    hyper = hyperparameters(PRIOR, latents.numpy(), 2)
    sd = task.y.std(-1)
    inside = (z.abs() < FURTHEST).all(-1)
    assert inside.sum() >= 3
    for found, expected in (
        (hyper.lengthscale, task.hyper.lengthscale),
        (hyper.noise_sd, task.hyper.noise_sd / sd),
        (hyper.output_variance, task.hyper.output_variance / sd.square()),
        (hyper.warp, task.hyper.warp),
        (hyper.roughness, task.hyper.roughness),
    ):
        assert found is not None
        assert expected is not None
        assert torch.allclose(found[inside], expected[inside], rtol=1e-9, atol=1e-12)


def test_one_observation_has_no_scale() -> None:
    task = batch(4, 2, 1)
    y, z = standardised(PRIOR, task.y, task.hyper)
    assert torch.equal(y, torch.zeros_like(y))
    assert z.isfinite().all()


@pytest.mark.parametrize("name", PRIORS)
def test_what_is_inferred(name: str) -> None:
    prior, d = PRIORS[name], 1
    for _, model in prior.models:
        flags = inferred(model, d)
        assert flags.shape == (6,)
        expected = {
            "paper": [True, False, False, False, True, False],
            "robust": [True, False, False, False, True, False],
            "paper-1d": [False] * 6,
            "real": [True, model.warped, model.warped, True, True, True],
        }[name]
        assert flags.tolist() == expected


@pytest.mark.parametrize("prior", [PRIOR, *(m for _, m in PRIOR.models), PRIORS["paper"]])
def test_order_is_that_of_the_posterior(prior: GPPrior) -> None:
    d = 3
    # Each coordinate of z says what it is: 100 for lengthscales, ... plus the coordinate.
    k = torch.arange(d)
    z = torch.cat([100 + k, 200 + k, 300 + k, torch.tensor([400, 500, 600])]).double()
    found = to_posterior_order(prior, z.expand(2, -1), d)
    expected = [100, 101, 102, 400, 500]
    if prior.warped:
        expected += [200, 201, 202, 300, 301, 302]
    if prior.kernel == "mixed":
        expected += [600]
    assert found.tolist() == [expected] * 2
    X = np.zeros((1, 2, d))
    assert HyperPosterior(prior, X, X[..., 0]).p == len(expected)


@pytest.mark.parametrize(
    ("field", "values"),
    [("width", {"width": 0}), ("layers", {"layers": 0}), ("heads", {"heads": 0}),
     ("width: must be a multiple of heads", {"width": 10, "heads": 4})],
)  # fmt: skip
def test_invalid_values_name_the_field(field: str, values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=field):
        EncoderConfig(**values)


def loss(network: Encoder, task: TaskBatch) -> dict[str, Tensor]:
    return inference_loss(network, PRIOR, task.X, task.y, task.hyper)


def seen_by(network: Encoder, task: TaskBatch) -> Tensor:
    """The y that the network is given."""
    seen: list[Tensor] = []
    handle = network.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[1]))
    loss(network, task)
    handle.remove()
    return seen[0]


def test_some_datasets_are_skewed_by_a_power() -> None:
    task = batch(2 * SKEWED, 2, 9)
    found = seen_by(encoder(), task)
    standard, _ = standardised(PRIOR, task.y, task.hyper)
    for i in range(2 * SKEWED):
        if i % SKEWED < SKEWED - 1:
            assert torch.allclose(found[i], standard[i])
            continue
        # The transform of what was skewed, in the units it had, is what it was made of.
        assert not torch.allclose(found[i], standard[i], atol=0.01)
        power = SKEWS[i // SKEWED]
        for slope, shift in fits(found[i], standard[i], power):
            back = stats.yeojohnson((slope * found[i] + shift).numpy(), power)
            assert torch.allclose(torch.from_numpy(back), standard[i], atol=1e-6)


def fits(found: Tensor, standard: Tensor, power: float) -> list[tuple[float, float]]:
    """Scale and shift that standardising took off: from the two largest positive values."""
    a, b = standard.topk(2).indices.tolist()
    raw = [(1.0 + power * float(standard[k])) ** (1.0 / power) - 1.0 for k in (a, b)]
    slope = (raw[0] - raw[1]) / float(found[a] - found[b])
    return [(slope, raw[0] - slope * float(found[a]))]


def test_the_density_is_that_of_the_true_hyperparameters() -> None:
    task = batch(8, 2, 9)
    network = encoder()
    y, z = standardised(PRIOR, task.y, task.hyper)
    proposals = network(task.X, y)
    assert task.hyper.warp is not None
    losses: list[Tensor] = []
    for i in range(8):
        if i % SKEWED == SKEWED - 1:
            continue  # of no draw of the prior
        warped = bool(task.hyper.warp[i].any())
        mean, log_sd = (t[i] for t in proposals[int(warped)])
        used = [0, 1, 6, 7, 8] if not warped else list(range(9))
        normal = torch.distributions.Normal(mean[used], log_sd[used].exp())
        density = normal.log_prob(z[i, used])  # type: ignore[no-untyped-call]
        losses.append(-density.mean() - 0.5 * math.log(2 * math.pi))
    found = loss(network, task)
    torch.testing.assert_close(found["density"], torch.stack(losses).mean())
    torch.testing.assert_close(found["loss"], found["density"] + WEIGHT * found["gap"])


def test_the_gap_falls_along_its_gradient() -> None:
    task = batch(6, 3, 25)
    network = encoder()
    y = seen_by(network, task)
    last = network.shared[-1]
    assert isinstance(last, torch.nn.Linear)
    bias = last.bias
    (gradient,) = torch.autograd.grad(loss(network, task)["gap"], bias)
    # By finite differences of the density, with the end of the climb kept.

    def density() -> Tensor:
        with torch.no_grad():
            values = [
                HyperPosterior(model, task.X.numpy(), y.numpy()).log_density(
                    to_posterior_order(model, mean, 3)[:, None].numpy()
                )[:, 0]
                for (_, model), (mean, _) in zip(PRIOR.models, network(task.X, y), strict=True)
            ]
        return torch.tensor(np.stack(values))  # models x b

    before = density()
    ends = find_ends(network, task, y)
    h = 1e-5
    for k in (0, 1):
        with torch.no_grad():
            bias[k] += h
        after = density()
        with torch.no_grad():
            bias[k] -= h
        rise = ((ends - after).log1p() - (ends - before).log1p()).mean() / h
        assert float(gradient[k]) == pytest.approx(float(rise), rel=0.01, abs=1e-4)


def find_ends(network: Encoder, task: TaskBatch, y: Tensor) -> Tensor:
    with torch.no_grad():
        values = [
            find_modes(
                HyperPosterior(model, task.X.numpy(), y.numpy()),
                to_posterior_order(model, mean, 3).numpy(),
                STEPS,
            ).value
            for (_, model), (mean, _) in zip(PRIOR.models, network(task.X, y), strict=True)
        ]
        return torch.tensor(np.stack(values))


def test_one_observation_has_a_loss() -> None:
    assert loss(encoder(), batch(4, 2, 1))["loss"].isfinite()


def test_a_few_steps_of_training_help() -> None:
    network = encoder(random=False).float()
    held_back = [batch(32, 2, 20, 1000 + i) for i in range(4)]

    def scores() -> tuple[float, float]:
        with torch.no_grad():
            found = [loss(network, task) for task in held_back]
        density, gap = (torch.stack([f[name] for f in found]).mean() for name in ("density", "gap"))
        return float(density), float(gap)

    density, gap = scores()
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
    for step in range(60):
        optimiser.zero_grad()
        loss(network, batch(32, 2, 20, step))["loss"].backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    after = scores()
    assert after[0] < density
    assert after[1] < gap - 0.3
