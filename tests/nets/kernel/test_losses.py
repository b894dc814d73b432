import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from amortes.nets.kernel.encoder import Encoder, standardised, to_posterior_order
from amortes.nets.kernel.hyper_posterior import HyperPosterior
from amortes.nets.kernel.losses import SKEWED, SKEWS, STEPS, WEIGHT, inference_loss
from amortes.nets.kernel.modes import find_modes
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from tests.nets.kernel.test_encoder import encoder

PRIOR = PRIORS["real"]


def batch(size: int, d: int, n: int, step: int = 0) -> TaskBatch:
    return TaskStream(PRIOR, 7, TaskConfig(batch_size=size, num_queries=0)).batch_of(step, d, n)


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
