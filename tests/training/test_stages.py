import dataclasses
from pathlib import Path

import pytest
import torch

from amortes.errors import ConfigError
from amortes.nets.kernel import KernelConfig
from amortes.training.export import export, load_network
from amortes.training.learner import Learner
from amortes.training.recipes import recipe
from amortes.training.run import Progress, TrainingRun
from amortes.training.stages import Base, initial_network
from tests.training.fake import PRIOR, FakeConfig, FakeNetwork, export_untrained, fake_recipe


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The folder of a base run whose weights are not those of a new network."""
    recipe = fake_recipe(seed=9)
    run = TrainingRun.start(tmp_path / "base", recipe)
    run.save(Learner(recipe, initial_network(recipe), torch.device("cpu")), Progress())
    return run.folder


def test_alpha_starts_from_the_base(base: Path) -> None:
    network = initial_network(fake_recipe("alpha"), base)
    assert isinstance(network, FakeNetwork)
    trained, _ = TrainingRun.open(base).weights()
    assert torch.equal(network.state_dict()["base.0.weight"], trained["base.0.weight"])
    assert float(network.alpha_started) == 1.0
    fresh = initial_network(fake_recipe())
    assert not torch.equal(
        network.state_dict()["base.0.weight"], fresh.state_dict()["base.0.weight"]
    )


def test_alpha_part_may_differ(base: Path) -> None:
    config = FakeConfig(gain_width=5, bars=4)
    network = initial_network(fake_recipe("alpha", config=config), base)
    trained, _ = TrainingRun.open(base).weights()
    assert torch.equal(network.state_dict()["base.0.weight"], trained["base.0.weight"])
    assert network.state_dict()["alpha.0.weight"].shape == (5, 6)
    assert network.state_dict()["borders"].shape == (5,)


def test_base_part_may_not_differ(base: Path) -> None:
    with pytest.raises(ConfigError, match=r"base: .* parameter base.0.weight does not fit"):
        initial_network(fake_recipe("alpha", config=FakeConfig(width=5)), base)


def test_stage_and_base_belong_together(base: Path) -> None:
    with pytest.raises(ConfigError, match="needs a base network"):
        initial_network(fake_recipe("alpha"))
    with pytest.raises(ConfigError, match="a base has none"):
        initial_network(fake_recipe("base"), base)


def test_base_must_be_a_base_run(tmp_path: Path) -> None:
    TrainingRun.start(tmp_path, fake_recipe("alpha"))
    with pytest.raises(ConfigError, match="is a run of stage alpha"):
        initial_network(fake_recipe("alpha"), tmp_path)


def test_prior_must_be_the_bases(base: Path) -> None:
    prior = dataclasses.replace(PRIOR, max_dim=3)
    message = r"trained on prior 'tiny', not on 'tiny'\. Differences: max_dim: 2 -> 3\."
    with pytest.raises(ConfigError, match=message):
        initial_network(fake_recipe("alpha", prior=prior), base)


@pytest.fixture
def taught(tmp_path: Path, base: Path) -> Path:
    """The file of a network that knows gains."""
    recipe = fake_recipe("alpha")
    run = TrainingRun.start(tmp_path / "alpha", recipe, base=TrainingRun.open(base).describe())
    run.save(Learner(recipe, initial_network(recipe, base), torch.device("cpu")), Progress())
    export(run, tmp_path / "taught.safetensors")
    return tmp_path / "taught.safetensors"


def test_stages_go_on_with_the_weights_of_a_file(taught: Path, base: Path) -> None:
    trained = load_network(taught)[0].state_dict()
    network = initial_network(fake_recipe(seed=4), start=taught).state_dict()
    assert torch.equal(network["base.0.weight"], trained["base.0.weight"])
    assert not torch.equal(network["alpha.0.weight"], trained["alpha.0.weight"])
    network = initial_network(fake_recipe("alpha", seed=4), base, taught).state_dict()
    assert torch.equal(network["alpha.0.weight"], trained["alpha.0.weight"])


def test_base_may_be_a_network_in_a_file(tmp_path: Path, base: Path) -> None:
    file = tmp_path / "base.safetensors"
    export(TrainingRun.open(base), file, overrides=["effort=3"])
    network = initial_network(fake_recipe("alpha"), file)
    trained, _ = TrainingRun.open(base).weights()
    assert torch.equal(network.state_dict()["base.0.weight"], trained["base.0.weight"])
    assert Base.open(file).recipe.config == FakeConfig(effort=3)
    assert Base.open(file).about == Base.open(base).about


def test_start_must_fit_the_recipe(tmp_path: Path, base: Path, taught: Path) -> None:
    with pytest.raises(ConfigError, match=r"start: .* parameter base.0.weight does not fit"):
        initial_network(fake_recipe(config=FakeConfig(width=5)), start=taught)
    export(TrainingRun.open(base), tmp_path / "base.safetensors")
    with pytest.raises(ConfigError, match=r"with stages base; needed is .* with stage alpha"):
        initial_network(fake_recipe("alpha"), base, tmp_path / "base.safetensors")


def test_networks_of_which_nothing_is_learned(tmp_path: Path) -> None:
    file = tmp_path / "kernel.safetensors"
    export_untrained(file, KernelConfig(encoder=None), PRIOR)
    base = Base.open(file)
    assert base.about is None
    assert base.recipe.prior == PRIOR
    network = initial_network(recipe("kernel", "alpha", PRIOR, config=base.recipe.config), base)
    assert list(network.base_parameters()) == []
    assert list(network.alpha_parameters())
