import json
from pathlib import Path
from typing import Any

import click
import pytest
import torch
from click.testing import CliRunner

from amortes.cli.train import alpha, base, bench, curves, require_kind, run, settings_of
from amortes.cli.weights import card_rows
from amortes.errors import ConfigError, FileError
from amortes.nets.kernel import KernelNetwork
from amortes.nets.kernel.optimum.representers import RepresenterConfig
from amortes.prior.gp import named_prior
from amortes.training import lessons, loop
from amortes.training.export import export, load_network
from amortes.training.recipes import architecture
from amortes.training.run import TrainingRun
from tests.cli.call import invoke
from tests.training.fake import fake_recipe

pytestmark = pytest.mark.usefixtures("fake_transformer")

FAKE = ("--recipe", "transformer")
OPTIONS: dict[str, Any] = {"corpus_folder": None, "hours": None, "workers": 0, "threads": 1}


def test_a_run_and_what_comes_next(tmp_path: Path) -> None:
    folder = tmp_path / "base"
    arguments = ("--prior", "paper-1d", "--run", folder, "--steps", 4, "--set", "lr=5e-3")
    result = invoke(base, *FAKE, *arguments, "--threads", 1)
    assert "Step 4 of 4, best validation" in result.stderr
    assert f"amortes train alpha --base {folder}" in result.stderr.replace("\n", "")
    recipe = TrainingRun.open(folder).recipe
    assert (recipe.steps, recipe.lr, recipe.prior.name) == (4, 5e-3, "paper-1d")


def test_going_on_with_the_weights_of_a_file(tmp_path: Path) -> None:
    first, second, file = tmp_path / "1", tmp_path / "2", tmp_path / "1.safetensors"
    invoke(
        base, *FAKE, "--prior", "paper-1d", "--run", first, "--steps", 3, "--set", "config.width=5"
    )
    export(TrainingRun.open(first), file)
    arguments = ("--prior", "paper", "--run", second, "--steps", 2, "--start", file)
    invoke(base, *FAKE, *arguments)
    run = TrainingRun.open(second)
    assert (run.recipe.config.width, run.recipe.prior.name) == (5, "paper")
    assert run.describe()["start"]["step"] == 3
    assert "Step 2 of 2" in invoke(base, *FAKE, *arguments).stderr  # nothing has changed
    with pytest.raises(ConfigError, match=r"start: .* -> None"):
        invoke(base, *FAKE, *arguments[:-2], "--set", "config.width=5")
    export(run, tmp_path / "2.safetensors")
    rows = {
        row["card"]: row["value"] for row in card_rows(load_network(tmp_path / "2.safetensors")[1])
    }
    assert "step 2 of 2" in rows["base"]
    assert "after 3 steps" in rows["base"]
    with pytest.raises(ConfigError, match="another kind of network than fake"):
        invoke(base, *FAKE, "--recipe", "paper", "--run", tmp_path / "3", "--start", file)


def test_wrong_setting_lists_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tasks.size: no such setting; there are tasks.batch"):
        invoke(base, *FAKE, "--run", tmp_path, "--set", "tasks.size=3")


@pytest.fixture(scope="module")
def base_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a base run."""
    folder = tmp_path_factory.mktemp("runs") / "base"
    loop.train(folder, fake_recipe(prior=named_prior("paper-1d"), name="transformer", steps=2))
    return folder


def test_a_run_on_a_base_and_what_comes_next(base_run: Path, tmp_path: Path) -> None:
    result = invoke(alpha, "--base", base_run, "--run", tmp_path / "alpha", "--set", "steps=2")
    assert "validation: loss" in result.stderr
    assert "amortes export" in result.stderr
    recipe = TrainingRun.open(tmp_path / "alpha").recipe
    assert (recipe.stage, recipe.steps, recipe.prior.name) == ("alpha", 2, "paper-1d")


def test_it_needs_a_run(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="not the folder of a run"):
        invoke(alpha, "--base", tmp_path / "nothing", "--run", tmp_path / "alpha")
    result = CliRunner().invoke(alpha, ["--run", str(tmp_path)])
    assert result.exit_code == click.UsageError.exit_code
    assert "--base" in result.stderr


def test_the_recipe_must_suit_the_base(base_run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="paper trains another kind of network than fake"):
        invoke(alpha, "--recipe", "paper", "--base", base_run, "--run", tmp_path)


def test_gains_of_kernel_networks_need_no_trained_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = RepresenterConfig(count=16, num_global=32, per_centre=4, draws=16, optima=8)
    monkeypatch.setattr(lessons, "TEACHER", few)
    sizes = ("steps=2", "lessons=2", "validation_batches=1", "tasks.batch_size=2")
    options = [part for size in (*sizes, "tasks.max_context=4") for part in ("--set", size)]
    run, file = tmp_path / "alpha", tmp_path / "k.safetensors"
    result = invoke(alpha, "--base", "kernel-paper-1d", "--run", run, *options)
    assert "amortes export" in result.stderr
    export(TrainingRun.open(run), file)
    network, card = load_network(file)
    assert list(card.stages) == ["alpha"]
    assert isinstance(network, KernelNetwork)
    assert network.gain_network is not None
    X = torch.rand(1, 3, 1, dtype=torch.float64)
    state = network.condition(X, X[..., 0])
    assert network.expected_gain(state, X, "jes").isfinite().all()


def test_speed_as_table_and_json() -> None:
    arguments = ("--recipe", "transformer", "--prior", "paper-1d", "--steps", 1, "--threads", 1)
    assert "datasets per second" in invoke(bench, *arguments).stdout
    (row,) = json.loads(invoke(bench, *arguments, "--stage", "alpha", "--json").stdout)
    assert row["stage"] == "alpha"
    assert row["datasets_per_second"] > 0
    assert {"data_share", "forward_share", "backward_share", "peak_share"} <= row.keys()


def test_curves_are_written(tmp_path: Path) -> None:
    loop.train(tmp_path / "run", fake_recipe(steps=2))
    output = tmp_path / "new" / "curves.svg"
    invoke(curves, tmp_path / "run", "-o", output)
    assert output.read_text().startswith("<?xml")


def test_curves_need_a_run(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="not the folder of a run"):
        invoke(curves, tmp_path)


def test_out_of_time_then_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = fake_recipe(steps=2)
    run(recipe, folder=tmp_path / "run", **OPTIONS | {"hours": 0.0})
    told = capsys.readouterr().err
    assert "Step 0 of 2" in told
    assert "Run the same command again" in told
    run(recipe, folder=tmp_path / "run", **OPTIONS)
    assert "Step 2 of 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("network", "says"), [("fake", "Next: amortes train alpha"), ("kernel", "Next: amortes export")]
)
def test_after_the_base_comes_alpha_if_gains_are_learned(
    network: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = loop.TrainingOutcome(reason="finished", step=3, best_score=0.5)
    monkeypatch.setattr(loop, "train", lambda *args, **options: outcome)
    chosen = fake_recipe(network=network, config=architecture(network)[0]())
    run(chosen, folder=tmp_path, **OPTIONS)
    assert says in capsys.readouterr().err


def test_interrupt_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = loop.TrainingOutcome(reason="interrupted", step=3, best_score=None)
    monkeypatch.setattr(loop, "train", lambda *args, **options: outcome)
    with pytest.raises(KeyboardInterrupt):
        run(fake_recipe(), folder=tmp_path, **OPTIONS)


def test_one_of_several_processes_does_the_talking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = loop.TrainingOutcome(reason="finished", step=3, best_score=0.5)
    monkeypatch.setattr(loop, "train", lambda *args, **options: outcome)
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        run(fake_recipe(), folder=tmp_path, **OPTIONS)
        assert ("best validation 0.5000" in capsys.readouterr().err) == (rank == "0")


def test_steps_are_a_setting() -> None:
    options = {"overrides": ("lr=1",), "steps": 3, "hours": None}
    assert settings_of(options) == ["lr=1", "steps=3"]
    assert options == {"hours": None}
    assert settings_of({"overrides": ("lr=1",), "steps": None}) == ["lr=1"]


def test_recipes_have_a_kind(tmp_path: Path) -> None:
    require_kind("paper", "transformer", tmp_path)
    with pytest.raises(ConfigError, match="paper trains another kind of network than kernel"):
        require_kind("paper", "kernel", tmp_path)
