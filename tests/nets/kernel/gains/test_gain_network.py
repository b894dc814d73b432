import pytest
import torch
from torch import nn

from amortes.errors import ConfigError
from amortes.nets.kernel.gains.gain_features import NUM_PAIR, NUM_QUERY
from amortes.nets.kernel.gains.gain_network import GainConfig, GainNetwork
from amortes.random import generator


@pytest.fixture
def network() -> GainNetwork:
    """With weights that are not those it begins with, but for the last layer of queries."""
    made = GainNetwork(GainConfig()).double()
    rng = generator(2)
    for parameter in made.pairs.parameters():
        nn.init.normal_(parameter, std=0.3, generator=rng)
    return made.requires_grad_(False)


def test_weights_of_pairs_are_symmetric_and_sum_to_those_of_particles(network: GainNetwork) -> None:
    rng = generator(1)
    pairs = torch.randn(2, 5, 5, NUM_PAIR, generator=rng, dtype=torch.float64)
    pairs = pairs + pairs.transpose(1, 2)
    weights = torch.randn(2, 5, generator=rng, dtype=torch.float64).softmax(-1)
    joint = network.joint_weights(pairs, weights)
    assert joint.shape == (2, 3, 5, 5)
    torch.testing.assert_close(joint, joint.mT)
    torch.testing.assert_close(joint.sum(-1), weights[:, None].expand(-1, 3, -1))


def test_particles_that_are_told_apart_are_weighed_by_themselves(network: GainNetwork) -> None:
    *_, last = network.pairs.parameters()  # the bias of the last layer
    nn.init.constant_(last, 50.0)
    weights = torch.tensor([[0.2, 0.8]], dtype=torch.float64)
    joint = network.joint_weights(torch.zeros(1, 2, 2, NUM_PAIR, dtype=torch.float64), weights)
    torch.testing.assert_close(joint, weights.diag_embed()[:, None].expand_as(joint))


def test_untrained_it_has_the_textbook_variance(network: GainNetwork) -> None:
    queries = torch.randn(2, 4, 6, NUM_QUERY, generator=generator(3), dtype=torch.float64)
    shift, left = network.moments(queries)
    assert shift.shape == left.shape == (2, 3, 4, 6)
    assert not shift.any()
    torch.testing.assert_close(left, queries[:, None, ..., 0].sigmoid().expand_as(left))


def test_features_are_standardised(network: GainNetwork) -> None:
    rng = generator(4)
    pairs = 3.0 + 2.0 * torch.randn(50, 4, 4, NUM_PAIR, generator=rng, dtype=torch.float64)
    queries = torch.randn(50, 4, 6, NUM_QUERY, generator=rng, dtype=torch.float64) - 7.0
    network.standardise(pairs, queries)
    torch.testing.assert_close(network.pair_mean, pairs.flatten(0, 2).mean(0))
    torch.testing.assert_close(network.query_sd, queries.flatten(0, 2).std(0) + 1e-3)


def test_sizes_are_checked() -> None:
    with pytest.raises(ConfigError, match="pair_width"):
        GainConfig(pair_width=0)
