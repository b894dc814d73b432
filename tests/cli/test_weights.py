import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from amortes.cli import app
from amortes.cli.weights import Weights, card_rows, export
from amortes.errors import ConfigError, FileError
from amortes.pretrained import SUFFIX, load_pretrained, names, weights_path
from amortes.training.export import load_network
from amortes.training.loop import train
from tests.cli.call import invoke
from tests.training.fake import fake_recipe


@pytest.mark.parametrize("name", names())
def test_names_become_the_files_that_come_with_amortes(name: str) -> None:
    path = Weights().convert(name, None, None)
    assert path.name == f"{name}{SUFFIX}"
    assert path.is_file()


def test_anything_else_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(names()[0]).touch()  # a name is a name, whatever there is in this folder
    assert Weights().convert(names()[0], None, None).parent != Path()
    for text in (f"./{names()[0]}", "mine.st", "runs/k.safetensors"):
        assert Weights().convert(text, None, None) == Path(text)


def test_a_card_has_a_line_per_fact() -> None:
    network, card = load_pretrained()
    facts = {row["card"]: row["value"] for row in card_rows(card)}
    count = sum(p.numel() for p in network.parameters())
    assert facts["parameters"] == f"{count:,}"
    prior = network.prior
    assert facts["prior"] == f"{prior.name}, d in {prior.min_dim}..{prior.max_dim}"
    assert {f"score: {name}" for name in card.scores} <= facts.keys()


def test_every_network_that_comes_with_amortes_is_listed() -> None:
    result = CliRunner().invoke(app, ["info"])
    assert result.exit_code == 0
    for name in names():
        assert name in result.output


def test_json_of_one_by_name_and_by_file() -> None:
    by_name = CliRunner().invoke(app, ["info", names()[0], "--json"])
    by_file = CliRunner().invoke(app, ["info", str(weights_path(names()[0])), "--json"])
    assert by_name.exit_code == 0
    assert by_name.output == by_file.output
    card = json.loads(by_name.output)[names()[0]]
    assert card["network"] == "kernel"
    assert {"stages", "scores", "prior"} <= card.keys()


def test_json_of_trained_weights_has_stages_and_scores() -> None:
    result = CliRunner().invoke(app, ["info", "transformer-paper", "--json"])
    card = json.loads(result.output)["transformer-paper"]
    assert {"base", "alpha"} <= set(card["stages"])
    assert card["scores"], "weights are shipped with their scores"


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        CliRunner().invoke(app, ["info", str(tmp_path / "no")], catch_exceptions=False)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    base, alpha = folder / "base", folder / "alpha"
    train(base, fake_recipe(steps=2))
    train(alpha, fake_recipe("alpha", steps=2), base=base)
    return base, alpha


def test_card_is_printed_and_stored(runs: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "scores.json").write_text('{"excess": 0.25}')
    output = tmp_path / "network.safetensors"
    result = invoke(export, runs[1], "-o", output, "--scores", tmp_path / "scores.json")
    for fact in ("fake", "tiny", "step 2 of 2", "score: excess", "0.25", "MIT"):
        assert fact in result.stdout
    assert result.stderr == ""
    assert load_network(output)[1].scores == {"excess": 0.25}


def test_json(runs: tuple[Path, Path], tmp_path: Path) -> None:
    card = json.loads(invoke(export, runs[1], "-o", tmp_path / "f", "--json").stdout)
    assert card["stages"].keys() == {"base", "alpha"}


def test_base_alone_is_said_to_have_no_gains(runs: tuple[Path, Path], tmp_path: Path) -> None:
    assert "It has no gains" in invoke(export, runs[0], "-o", tmp_path / "f").stderr


def test_kernel_networks_have_gains_without_an_alpha_stage(tmp_path: Path) -> None:
    file = tmp_path / "k.safetensors"
    assert invoke(export, "kernel-paper", "-o", file, "--set", "landmarks.draws=8").stderr == ""
    assert load_network(file)[0].config.landmarks.draws == 8


def test_weights_with_other_settings(runs: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    invoke(export, runs[1], "-o", first)
    assert invoke(export, first, "-o", second, "--set", "effort=5").stderr == ""
    assert load_network(second)[0].config.effort == 5
    with pytest.raises(ConfigError, match="only the folder of a base run takes gains"):
        invoke(export, first, "-o", second, "--alpha", first)


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="not the folder of a run"):
        invoke(export, tmp_path, "-o", tmp_path / "f")


def test_scores_must_be_an_object(runs: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "scores.json").write_text('[{"excess": 0.25}]')
    with pytest.raises(FileError, match=r"scores\.json: expected a JSON object of .* not a list"):
        invoke(export, runs[1], "-o", tmp_path / "f", "--scores", tmp_path / "scores.json")
    assert not (tmp_path / "f").exists()
