import csv
import errno
import fcntl
import io
from pathlib import Path
from typing import Any

import pytest

from amortes.command.folder import RunFolder, as_csv
from amortes.errors import ConfigError, FileError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Float, Int, Optimizer, Space, Trial

SPACE = Space({"x": Float(0, 1), "n": Int(1, 5)})


def open_run(folder: RunFolder, network: KernelNetwork, **changes: Any) -> Optimizer:
    settings: dict[str, Any] = {
        "goal": "minimize",
        "acquisition": "logei",
        "seed": 3,
        "network": network,
    }
    about = {"command": ["./train.sh", "{x}"], "result": None, "cost": None, "violation": None}
    about |= {name: changes.pop(name) for name in about if name in changes}
    return folder.open(changes.pop("space", SPACE), **(settings | changes), about=about)


def test_a_run_goes_on(tmp_path: Path, network: KernelNetwork) -> None:
    folder = RunFolder(tmp_path / "run")
    first = open_run(folder, network)
    first.tell(first.ask(), 1.0)
    first.ask()
    first.save(folder.state)
    again = open_run(folder, network)
    assert again.trials == first.trials
    assert again.state == first.state


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"goal": "maximize"}, "goal: .* has minimize, not maximize"),
        ({"acquisition": "jes"}, "acquisition: .* has logei, not jes"),
        ({"seed": 4}, "seed: .* has 3, not 4"),
        ({"command": ["./other.sh"]}, r"command: .* has ./train.sh \{x\}, not ./other.sh"),
        ({"result": "r.json:loss"}, "result: .* has null, not r.json:loss"),
        ({"cost": "seconds"}, "cost: .* has null, not seconds"),
        ({"space": Space({"x": Float(0, 2), "n": Int(1, 5)})}, "space: .* has {"),
    ],
)
def test_another_run_is_not_mixed_in(
    tmp_path: Path, network: KernelNetwork, changes: dict[str, Any], message: str
) -> None:
    folder = RunFolder(tmp_path)
    open_run(folder, network)
    with pytest.raises(ConfigError, match=message + r".* another place"):
        open_run(folder, network, **changes)


@pytest.mark.parametrize("content", ["{}", "[]", '{"command": ["a"]}'])
def test_a_damaged_note_of_the_command(
    tmp_path: Path, network: KernelNetwork, content: str
) -> None:
    folder = RunFolder(tmp_path / "run")
    open_run(folder, network)
    folder.command.write_text(content)
    with pytest.raises(FileError, match="is damaged"):
        open_run(folder, network)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    said = r"Another `amortes optimize` .* choose another folder"
    with folder.locked(), pytest.raises(FileError, match=said), folder.locked():
        raise AssertionError("both have the lock")
    with folder.locked():
        pass


def test_file_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(handle: int, how: int) -> None:
        raise OSError(errno.ENOTSUP, "not here")

    monkeypatch.setattr(fcntl, "flock", flock)
    with RunFolder(tmp_path / "run").locked():
        assert (tmp_path / "run").is_dir()


def test_the_table(tmp_path: Path) -> None:
    trials = [
        Trial(0, {"x": 0.1 + 0.2, "s": 'a,"b"', "b": True, "l": None}, "done", 1e-17),
        Trial(1, {"x": 1.0, "s": "c", "b": False, "l": None}, "failed", reason="exit code 1: x\ny"),
    ]
    rows = list(csv.DictReader(io.StringIO(as_csv(trials))))
    assert [float(row["x"]) for row in rows] == [0.1 + 0.2, 1.0]
    assert float(rows[0]["value"]) == 1e-17
    assert rows[0]["s"] == 'a,"b"'
    assert (rows[0]["b"], rows[0]["l"]) == ("true", "null")
    assert (rows[1]["status"], rows[1]["value"]) == ("failed", "")
    assert rows[1]["reason"] == "exit code 1: x\ny"
    assert as_csv([]) == "trial,status,value,reason\n"


def test_costs_and_violations_have_columns_where_there_are_any() -> None:
    trials = [
        Trial(0, {"x": 1.0}, "done", 2.0, cost=3.0, violation=-1.0),
        Trial(1, {"x": 2.0}, "failed", violation=0.5),
    ]
    lines = as_csv(trials).splitlines()
    assert lines[0] == "trial,status,value,cost,violation,x,reason"
    assert lines[1:] == ["0,done,2.0,3.0,-1.0,1.0,", "1,failed,,,0.5,2.0,"]


def test_the_report(tmp_path: Path, network: KernelNetwork) -> None:
    folder = RunFolder(tmp_path)
    optimizer = open_run(folder, network)
    for value in (1.0, 2.0, 0.5):
        optimizer.tell(optimizer.ask(), value)
    folder.write_report(optimizer)
    assert folder.plot.read_bytes().startswith(b"\x89PNG")
    assert len(folder.csv.read_text().splitlines()) == 4
    assert folder.trial(12).name == "0012"
    assert folder.trial(12).is_absolute()
