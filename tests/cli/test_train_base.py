from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from amortes.cli.train_base import base
from amortes.cli.weights import card_rows
from amortes.errors import ConfigError
from amortes.training.export import export, load_network
from amortes.training.run import TrainingRun

pytestmark = pytest.mark.usefixtures("fake_transformer")

FAKE = ("--recipe", "transformer")


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(base, [str(a) for a in (*FAKE, *arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_a_run_and_what_comes_next(tmp_path: Path) -> None:
    folder = tmp_path / "base"
    arguments = ("--prior", "paper-1d", "--run", folder, "--steps", 4, "--set", "lr=5e-3")
    result = invoke(*arguments, "--threads", 1)
    assert "Step 4 of 4, best validation" in result.stderr
    assert f"amortes train alpha --base {folder}" in result.stderr.replace("\n", "")
    recipe = TrainingRun.open(folder).recipe
    assert (recipe.steps, recipe.lr, recipe.prior.name) == (4, 5e-3, "paper-1d")


def test_going_on_with_the_weights_of_a_file(tmp_path: Path) -> None:
    first, second, file = tmp_path / "1", tmp_path / "2", tmp_path / "1.safetensors"
    invoke("--prior", "paper-1d", "--run", first, "--steps", 3, "--set", "config.width=5")
    export(TrainingRun.open(first), file)
    arguments = ("--prior", "paper", "--run", second, "--steps", 2, "--start", file)
    invoke(*arguments)
    run = TrainingRun.open(second)
    assert (run.recipe.config.width, run.recipe.prior.name) == (5, "paper")
    assert run.describe()["start"]["step"] == 3
    assert "Step 2 of 2" in invoke(*arguments).stderr  # nothing has changed
    with pytest.raises(ConfigError, match=r"start: .* -> None"):
        invoke(*arguments[:-2], "--set", "config.width=5")
    export(run, tmp_path / "2.safetensors")
    rows = {
        row["card"]: row["value"] for row in card_rows(load_network(tmp_path / "2.safetensors")[1])
    }
    assert "step 2 of 2" in rows["base"]
    assert "after 3 steps" in rows["base"]
    with pytest.raises(ConfigError, match="another kind of network than fake"):
        invoke("--recipe", "paper", "--run", tmp_path / "3", "--start", file)


def test_wrong_setting_lists_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tasks.size: no such setting; there are tasks.batch"):
        invoke("--run", tmp_path, "--set", "tasks.size=3")
