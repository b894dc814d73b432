import json

import pytest

from amortes.errors import ConfigError
from amortes.pretrained import DEFAULT, load_pretrained, names, weights_path
from tests.pretrained.golden import FILE, compute


def test_the_default_is_there_and_first() -> None:
    assert names()[0] == DEFAULT


def test_loading_twice_shares_one_network() -> None:
    network, card = load_pretrained()
    assert load_pretrained()[0] is network
    assert not network.training
    assert not any(p.requires_grad for p in network.parameters())
    assert network.trained_points == card.stages["base"]["recipe"]["tasks"]["max_context"]


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match=DEFAULT):
        load_pretrained("kernel-unknown")


@pytest.mark.parametrize("name", names())
def test_predictions_and_gains_are_what_they_were(name: str) -> None:
    golden = json.loads(FILE.read_text())[name]
    now = compute(name)
    assert now.keys() == golden.keys()
    for key, rows in golden.items():
        for row, expected in zip(now[key], rows, strict=True):
            assert row == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_files_are_small() -> None:
    for name in names():
        assert weights_path(name).stat().st_size < 10e6
