import json
from pathlib import Path

import pytest

from amortes.files import CACHE_VARIABLE
from amortes.oracles.store import Store, rounded
from amortes.prior.gp import GPPrior, named_prior


def anything(entry: dict[str, object]) -> bool:
    return True


def test_entries_come_back_and_live_side_by_side(tmp_path: Path) -> None:
    store = Store("kind", GPPrior(), {"seed": 1}, tmp_path / "new folder")
    assert store.find("a", anything) is None
    store.put("a", {"values": [1.5, 2.0]})
    store.put("b", {"values": [3.0]})
    again = Store("kind", GPPrior(name="another name"), {"seed": 1}, tmp_path / "new folder")
    assert again.find("a", anything) == {"values": [1.5, 2.0]}
    assert again.find("b", anything) == {"values": [3.0]}
    assert again.find("a", lambda entry: len(entry["values"]) == 3) is None
    document = json.loads(store.path.read_text())
    assert GPPrior.from_dict(document["prior"]) == GPPrior()


def test_other_settings_and_priors_have_other_files(tmp_path: Path) -> None:
    store = Store("kind", GPPrior(), {"seed": 1}, tmp_path)
    store.put("a", {})
    for prior, seed in ((GPPrior(), 2), (GPPrior(max_dim=3), 1)):
        assert Store("kind", prior, {"seed": seed}, tmp_path).find("a", anything) is None


@pytest.mark.parametrize("text", ["", "{", '{"entries": 3}', "[]", '{"entries": {"a": {}}}'])
def test_a_damaged_file_is_replaced(tmp_path: Path, text: str) -> None:
    store = Store("kind", GPPrior(), {}, tmp_path)
    store.put("a", {})
    store.path.write_text(text)
    assert store.find("a", anything) is None
    store.put("b", {})
    assert store.find("b", anything) == {}


def test_folder_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    assert Store("kind", GPPrior(), {}).path.parent == tmp_path
    assert Store("kind", GPPrior(), {}, tmp_path / "given").path.parent == tmp_path / "given"
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store("kind", GPPrior(), {}).path.parent == tmp_path / ".cache" / "amortes"


def test_nothing_is_shipped_for_unknown_settings(tmp_path: Path) -> None:
    assert Store("reference", named_prior("paper"), {}, tmp_path).find("d=1 n=5", anything) is None


def test_rounding_is_nested() -> None:
    assert rounded([[0.123456, 1.0], [2.000001]], 3) == [[0.123, 1.0], [2.0]]
