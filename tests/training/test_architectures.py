from typing import Any

import pytest
import torch

from amortes.errors import ConfigError
from amortes.nets.kernel import KernelConfig
from amortes.nets.kernel.encoder import EncoderConfig
from amortes.nets.transformer import TransformerConfig
from amortes.training.architectures import build_network, config_class, learns_gains, read_config
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


REAL = [
    ("kernel", KernelConfig(encoder=EncoderConfig(width=4)), "encoder.layers.0.qkv.weight"),
    ("transformer", TransformerConfig(width=8, heads=2, hidden=8, layers=1), "base.y.weight"),
]


@pytest.mark.parametrize(("kind", "config", "name"), REAL)
def test_the_seed_decides_for_every_kind(kind: str, config: Any, name: str) -> None:
    before = torch.random.get_rng_state()
    one, same, other = (build_network(kind, config, PRIOR, s).state_dict()[name] for s in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(before, torch.random.get_rng_state())


def test_configurations_are_read_for_every_kind() -> None:
    values = {"width": 8, "heads": 2}
    assert read_config("transformer", values) == TransformerConfig(width=8, heads=2)
    for kind in ("kernel", "transformer"):
        with pytest.raises(ConfigError, match=r"config\.seed: no such setting"):
            read_config(kind, {"seed": 3})


def test_what_has_an_alpha_stage() -> None:
    assert learns_gains("transformer")
    assert not learns_gains("kernel")


def test_unknown_kind_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match="no architecture 'magic'; there are kernel, transformer"):
        config_class("magic")
