from pathlib import Path

import pytest

from amortes.cli.weights import Weights, card_rows
from amortes.pretrained import SUFFIX, load_pretrained, names


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
