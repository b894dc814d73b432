from pathlib import Path

import click
import pytest
import torch
from click.testing import CliRunner, Result

from amortes.cli.train_alpha import alpha as command
from amortes.errors import ConfigError, FileError
from amortes.files import sha256
from amortes.prior.gp import named_prior
from amortes.training.export import export
from amortes.training.loop import train
from amortes.training.recipes import recipe
from amortes.training.run import TrainingRun
from tests.training.fake import fake_recipe

pytestmark = pytest.mark.usefixtures("fake_transformer")


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a base run."""
    folder = tmp_path_factory.mktemp("runs") / "base"
    train(folder, fake_recipe(prior=named_prior("paper-1d"), name="transformer", steps=2))
    return folder


def test_a_run_on_a_base_and_what_comes_next(base: Path, tmp_path: Path) -> None:
    result = invoke("--base", base, "--run", tmp_path / "alpha", "--set", "steps=2")
    assert "validation: loss" in result.stderr
    assert "amortes export" in result.stderr
    recipe = TrainingRun.open(tmp_path / "alpha").recipe
    assert (recipe.stage, recipe.steps, recipe.prior.name) == ("alpha", 2, "paper-1d")


def test_gains_of_a_teacher(base: Path, tmp_path: Path) -> None:
    alpha, file = tmp_path / "alpha", tmp_path / "k.safetensors"
    invoke("--base", base, "--run", alpha, "--steps", 2)
    export(TrainingRun.open(alpha), file)
    arguments = ("--base", base, "--run", tmp_path / "taught", "--steps", 2)
    invoke(*arguments, "--teacher", file)
    assert TrainingRun.open(tmp_path / "taught").describe()["teacher"] == sha256(file)
    trained = [TrainingRun.open(folder).weights()[0] for folder in (alpha, tmp_path / "taught")]
    assert not torch.equal(*(weights["alpha.0.weight"] for weights in trained))
    with pytest.raises(ConfigError, match=r"teacher: .* -> None"):
        invoke(*arguments)


def test_it_needs_a_run(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="not the folder of a run"):
        invoke("--base", tmp_path / "nothing", "--run", tmp_path / "alpha")
    result = CliRunner().invoke(command, ["--run", str(tmp_path)])
    assert result.exit_code == click.UsageError.exit_code
    assert "--base" in result.stderr


def test_the_recipe_must_suit_the_base(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="paper trains another kind of network than fake"):
        invoke("--recipe", "paper", "--base", base, "--run", tmp_path)


def test_gains_of_kernel_networks_are_not_learned(base: Path, tmp_path: Path) -> None:
    message = r"gains are computed, not learned; use --recipe transformer"
    with pytest.raises(ConfigError, match=message):
        invoke("--recipe", "kernel", "--base", base, "--run", tmp_path)
    learner = recipe("kernel", "base", named_prior("paper-1d"), ["steps=1", "tasks.max_context=4"])
    train(tmp_path / "kernel", learner)
    with pytest.raises(ConfigError, match=message):
        invoke("--base", tmp_path / "kernel", "--run", tmp_path / "alpha")
    with pytest.raises(ConfigError, match=r"nothing in .* is learned; its gains are computed"):
        invoke("--recipe", "kernel", "--base", "kernel-paper", "--run", tmp_path / "alpha")
