import pytest
import torch

from amortes.errors import ConfigError
from amortes.training.architectures import build_network, config_class
from tests.training.fake import PRIOR, FakeConfig


def test_weights_depend_on_the_seed_alone() -> None:
    state = torch.random.get_rng_state()
    first = build_network("fake", FakeConfig(), PRIOR, seed=3).state_dict()
    torch.rand(5)
    second = build_network("fake", FakeConfig(), PRIOR, seed=3).state_dict()
    other = build_network("fake", FakeConfig(), PRIOR, seed=4).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["base.0.weight"], other["base.0.weight"])
    torch.random.set_rng_state(state)


def test_global_generator_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    build_network("fake", FakeConfig(), PRIOR)
    assert torch.equal(before, torch.random.get_rng_state())


def test_unknown_kind_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match="no architecture 'magic'; there are kernel, transformer"):
        config_class("magic")
