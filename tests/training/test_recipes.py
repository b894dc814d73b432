import dataclasses
import json
from typing import Any

import pytest
import torch

from amortes.errors import ConfigError
from amortes.nets.kernel import KernelConfig
from amortes.nets.kernel.gains.gain_network import GainConfig
from amortes.nets.kernel.hyperparameters.encoder import EncoderConfig
from amortes.nets.transformer import TransformerConfig
from amortes.prior.gp import named_prior
from amortes.prior.tasks import TaskStream
from amortes.training.learner import Learner
from amortes.training.recipes import (
    RECIPES,
    STAGES,
    Recipe,
    Stage,
    architecture,
    build_network,
    needs_alpha,
    read_config,
    recipe,
)
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


def test_what_needs_an_alpha_stage() -> None:
    assert needs_alpha("transformer")
    assert not needs_alpha("kernel")


def test_unknown_kind_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match="no architecture 'magic'; there are kernel, transformer"):
        architecture("magic")


PAPER = named_prior("paper")

# Sizes at which a step of the real networks takes milliseconds.
SMALL = {
    "paper": ("config.width=16", "config.layers=1", "config.hidden=16", "config.bars=50"),
    "transformer": ("config.width=16", "config.layers=1", "config.hidden=16", "config.bars=50"),
    "kernel": ("config.encoder.width=16", "config.encoder.layers=1"),
}
ALL = [(name, stage) for name in RECIPES for stage in STAGES]
OF_TASKS = [(name, stage) for name, stage in ALL if (name, stage) != ("kernel", "alpha")]


@pytest.mark.parametrize(("name", "stage"), ALL)
def test_json_round_trip(name: str, stage: Stage) -> None:
    chosen = recipe(name, stage, PAPER)
    assert chosen.name == name
    assert chosen.stage == stage
    assert Recipe.from_dict(json.loads(json.dumps(chosen.to_dict()))) == chosen


def test_paper_recipe_is_the_papers() -> None:
    chosen = recipe("paper", "base", PAPER)
    assert chosen.steps * chosen.tasks.batch_size == 100_000_000
    assert (chosen.tasks.batch_size, chosen.lr, chosen.optimiser) == (100, 1e-4, "adamw")
    assert (chosen.tasks.min_context, chosen.tasks.max_context) == (1, 49)
    assert chosen.tasks.max_context + chosen.tasks.num_queries <= 150
    assert (chosen.conditionings, chosen.warmup_share, chosen.pending_share) == ("one", 0.01, 0.0)
    config = chosen.config
    assert (config.width, config.layers, config.heads) == (128, 8, 4)
    assert (config.hidden, config.bars) == (512, 5000)


def test_overrides() -> None:
    chosen = recipe("kernel", "base", PAPER, ["lr=3e-3", "tasks.batch_size=32", "betas=0.9,0.95"])
    assert (chosen.lr, chosen.tasks.batch_size, chosen.betas) == (3e-3, 32, (0.9, 0.95))
    assert chosen.prior == PAPER


def test_changed_prior_loses_its_name() -> None:
    chosen = recipe("kernel", "base", PAPER, ["prior.max_dim=2"])
    assert (chosen.prior.max_dim, chosen.prior.name) == (2, "custom")


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(ConfigError, match="no recipe 'best'; there are paper, transformer, kernel"):
        recipe("best", "base", PAPER)
    with pytest.raises(ConfigError, match=r"tasks.size: no such setting; there are tasks.batch"):
        recipe("kernel", "base", PAPER, ["tasks.size=3"])


@pytest.mark.parametrize(
    "assignment",
    [
        "steps=0",
        "lr=0",
        "clip=inf",
        "pending_share=1.5",
        "average_decay=1",
        "betas=0.9,1",
        "seed=-1",
        "seed=7426917",  # of the evaluation tasks
        "seed=4294967295",  # of the validation tasks
    ],
)
def test_invalid_values_name_the_field(assignment: str) -> None:
    with pytest.raises(ConfigError, match=f"^{assignment.split('=')[0]}: must be"):
        recipe("kernel", "base", PAPER, [assignment])


def test_configuration_must_be_that_of_the_network() -> None:
    chosen = recipe("kernel", "base", PAPER)
    with pytest.raises(ConfigError, match="a transformer network takes a TransformerConfig"):
        dataclasses.replace(chosen, network="transformer")
    with pytest.raises(ConfigError, match="not a recipe"):
        Recipe.from_dict({})


def test_kernel_networks_learn_gains_from_lessons() -> None:
    chosen = recipe("kernel", "alpha", PAPER)
    assert chosen.taught
    assert chosen.config.gains is not None
    assert Recipe.from_dict(chosen.to_dict()) == chosen
    assert recipe("kernel", "base", PAPER).config.gains is None
    own = dataclasses.replace(chosen.config, gains=GainConfig(width=5))
    assert recipe("kernel", "alpha", PAPER, config=own).config == own
    # A base that goes on with the weights of a file has no gain network, for none is trained.
    assert recipe("kernel", "base", PAPER, config=own).config.gains is None
    with pytest.raises(ConfigError, match="lessons"):
        recipe("kernel", "alpha", PAPER, ["lessons=0"])
    with pytest.raises(ConfigError, match=r"config\.particles\.count: .* 16 or more, not 4"):
        recipe("kernel", "alpha", PAPER, ["config.particles.count=4"])
    with pytest.raises(ConfigError, match=r"config\.gains"):
        dataclasses.replace(chosen, config=KernelConfig())


@pytest.mark.parametrize(("name", "stage"), OF_TASKS)
def test_real_networks_take_a_step(name: str, stage: Stage) -> None:
    sizes = ("tasks.batch_size=2", "tasks.num_queries=3", "tasks.max_context=4", "prior.max_dim=2")
    chosen = recipe(name, stage, PAPER, [*SMALL[name], *sizes])
    network = build_network(chosen.network, chosen.config, chosen.prior)
    network.start_alpha()
    learner = Learner(chosen, network, torch.device("cpu"))
    before = [p.clone() for p in learner.parameters]
    task = TaskStream(chosen.prior, 0, chosen.tasks).batch_of(0, 2, 4)
    learner.forward(task)[0].backward()  # type: ignore[no-untyped-call]
    assert learner.clip().isfinite()
    learner.update()
    assert any(not torch.equal(a, b) for a, b in zip(before, learner.parameters, strict=True))
