import json
from pathlib import Path

import pytest

from amortes.cli.export import export
from amortes.errors import ConfigError, FileError
from amortes.training.export import load_network
from amortes.training.loop import train
from tests.cli.call import invoke
from tests.training.fake import fake_recipe


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
