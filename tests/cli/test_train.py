import json
from pathlib import Path
from typing import Any

import click
import pytest
import torch
from click.testing import CliRunner, Result

from amortes.cli.train import train
from amortes.cli.weights import card_rows
from amortes.errors import ConfigError, FileError
from amortes.files import sha256
from amortes.training import loop
from amortes.training.export import export, load_network
from amortes.training.recipes import RECIPES, Stage
from amortes.training.run import Run
from tests.training.fake import fake_recipe


@pytest.fixture(autouse=True)
def _fake_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(stage: Stage, prior: Any) -> Any:
        return fake_recipe(stage, prior=prior, name="kernel")

    monkeypatch.setitem(RECIPES, "kernel", fake)


def invoke(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(train, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_base_then_alpha(tmp_path: Path) -> None:
    base, alpha = tmp_path / "base", tmp_path / "alpha"
    arguments = ("base", "--prior", "paper-1d", "--run", base, "--steps", 4, "--set", "lr=5e-3")
    result = invoke(*arguments, "--threads", 1)
    assert "Step 4 of 4, best validation" in result.stderr
    assert f"amortes train alpha --base {base}" in result.stderr.replace("\n", "")
    recipe = Run.open(base).recipe
    assert (recipe.steps, recipe.lr, recipe.prior.name) == (4, 5e-3, "paper-1d")
    result = invoke("alpha", "--base", base, "--run", alpha, "--set", "steps=2")
    assert "validation: loss" in result.stderr
    assert "amortes export" in result.stderr
    recipe = Run.open(alpha).recipe
    assert (recipe.stage, recipe.steps, recipe.prior.name) == ("alpha", 2, "paper-1d")


def test_alpha_from_a_teacher(tmp_path: Path) -> None:
    base, alpha, file = tmp_path / "base", tmp_path / "alpha", tmp_path / "k.safetensors"
    invoke("base", "--prior", "paper-1d", "--run", base, "--steps", 2)
    invoke("alpha", "--base", base, "--run", alpha, "--steps", 2)
    export(Run.open(alpha), file)
    arguments = ("alpha", "--base", base, "--run", tmp_path / "taught", "--steps", 2)
    invoke(*arguments, "--teacher", file)
    assert Run.open(tmp_path / "taught").describe()["teacher"] == sha256(file)
    trained = [Run.open(folder).weights()[0] for folder in (alpha, tmp_path / "taught")]
    assert not torch.equal(*(weights["alpha.0.weight"] for weights in trained))
    with pytest.raises(ConfigError, match=r"teacher: .* -> None"):
        invoke(*arguments)


def test_going_on_with_the_weights_of_a_file(tmp_path: Path) -> None:
    first, second, file = tmp_path / "1", tmp_path / "2", tmp_path / "1.safetensors"
    invoke("base", "--prior", "paper-1d", "--run", first, "--steps", 3, "--set", "config.width=5")
    export(Run.open(first), file)
    arguments = ("base", "--prior", "paper", "--run", second, "--steps", 2, "--start", file)
    invoke(*arguments)
    run = Run.open(second)
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
        invoke("base", "--recipe", "transformer", "--run", tmp_path / "3", "--start", file)


def test_out_of_time_then_on(tmp_path: Path) -> None:
    arguments = ("base", "--prior", "paper-1d", "--run", tmp_path / "run", "--steps", 2)
    result = invoke(*arguments, "--hours", 0)
    assert "Step 0 of 2" in result.stderr
    assert "Start the same command again" in result.stderr
    assert "Step 2 of 2" in invoke(*arguments).stderr


def test_interrupt_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = loop.Outcome(reason="interrupted", step=3, best_score=None)
    monkeypatch.setattr(loop, "train", lambda *args, **options: outcome)
    with pytest.raises(click.Abort):  # what click makes of KeyboardInterrupt
        CliRunner().invoke(
            train,
            ["base", "--run", str(tmp_path)],
            catch_exceptions=False,
            standalone_mode=False,
        )


def test_wrong_setting_lists_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tasks.size: no such setting; there are tasks.batch"):
        invoke("base", "--run", tmp_path, "--set", "tasks.size=3")


def test_alpha_needs_a_run(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="not the folder of a run"):
        invoke("alpha", "--base", tmp_path / "nothing", "--run", tmp_path / "alpha")
    assert "--base" in invoke("alpha", "--run", tmp_path, code=2).stderr


def test_alpha_recipe_must_suit_the_base(tmp_path: Path) -> None:
    invoke("base", "--prior", "paper-1d", "--run", tmp_path / "base", "--steps", 1)
    with pytest.raises(ConfigError, match="transformer trains another kind of network than fake"):
        invoke("alpha", "--recipe", "transformer", "--base", tmp_path / "base", "--run", tmp_path)


def test_bench_as_table_and_json() -> None:
    arguments = ("bench", "--prior", "paper-1d", "--steps", 1, "--threads", 1)
    assert "datasets per second" in invoke(*arguments).stdout
    (row,) = json.loads(invoke(*arguments, "--stage", "alpha", "--json").stdout)
    assert row["stage"] == "alpha"
    assert row["datasets_per_second"] > 0
    assert {"data_share", "forward_share", "backward_share", "peak_share"} <= row.keys()


@pytest.mark.parametrize("command", [(), ("base",), ("alpha",), ("bench",)])
def test_help_teaches_with_examples(command: tuple[str, ...]) -> None:
    text = invoke(*command, "--help").stdout
    assert "Examples:" in text
    assert "amortes train" in text
