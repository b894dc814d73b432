import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from amortes.cli import app
from amortes.pretrained import names, weights_path


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
    from amortes.errors import FileError

    with pytest.raises(FileError, match="does not exist"):
        CliRunner().invoke(app, ["info", str(tmp_path / "no")], catch_exceptions=False)
