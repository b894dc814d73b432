import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from amortes.cli import app
from amortes.cli.weights import Weights, card_rows
from amortes.errors import FileError
from amortes.pretrained import SUFFIX, load_pretrained, names, weights_path


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
