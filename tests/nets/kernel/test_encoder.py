from typing import Any

import numpy as np
import pytest
import torch

from amortes.errors import ConfigError
from amortes.nets.kernel.encoder import (
    FURTHEST,
    Encoder,
    EncoderConfig,
    inferred,
    standardised,
    to_posterior_order,
)
from amortes.nets.kernel.hyper_posterior import HyperPosterior, hyperparameters
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
    task = TaskStream(PRIOR, 7, TaskConfig(batch_size=3, num_queries=0)).batch_of(0, 4, 6)
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
    task = TaskStream(PRIOR, 7, TaskConfig(batch_size=6, num_queries=0)).batch_of(0, 2, 9)
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
    task = TaskStream(PRIOR, 7, TaskConfig(batch_size=4, num_queries=0)).batch_of(0, 2, 1)
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
