import errno
import fcntl
from pathlib import Path
from typing import Any

import pytest

from amortes.command.folder import RunFolder
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
    settings |= {"start": (), "about": about}
    return folder.open(changes.pop("space", SPACE), **(settings | changes))


def test_a_run_goes_on(tmp_path: Path, network: KernelNetwork) -> None:
    folder = RunFolder(tmp_path / "run")
    first = open_run(folder, network)
    first.tell(first.ask(), 1.0)
    first.ask()
    first.save(folder.state)
    again = open_run(folder, network)
    assert again.trials == first.trials
    assert again.state == first.state


def test_past_results_belong_to_a_run(tmp_path: Path, network: KernelNetwork) -> None:
    folder, past = RunFolder(tmp_path), [Trial(0, {"x": 0.5, "n": 2}, "done", 1.0)]
    optimizer = open_run(folder, network, start=past)
    assert optimizer.trials == past
    optimizer.tell(optimizer.ask(), 2.0)
    optimizer.save(folder.state)
    assert len(open_run(folder, network, start=past).trials) == 2
    with pytest.raises(ConfigError, match=r"start: .* started from 1 past results"):
        open_run(folder, network)


def test_a_run_of_the_lab_gets_a_command(tmp_path: Path, network: KernelNetwork) -> None:
    folder, past = RunFolder(tmp_path), [Trial(0, {"x": 0.5, "n": 2}, "done", 1.0)]
    made = Optimizer(SPACE, acquisition="logei", seed=3, network=network, start=past)
    made.tell(made.ask(), 2.0)
    made.save(folder.state)
    with pytest.raises(ConfigError, match=r"seed: .* has 3, not 4"):
        open_run(folder, network, seed=4)
    assert not folder.command.exists()
    assert open_run(folder, network).trials == made.trials
    with pytest.raises(ConfigError, match=r"command: .* has './train.sh"):
        open_run(folder, network, command=["./other.sh"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"goal": "maximize"}, "goal: .* has 'minimize', not 'maximize'"),
        ({"acquisition": "jes"}, "acquisition: .* has 'logei', not 'jes'"),
        ({"seed": 4}, "seed: .* has 3, not 4"),
        ({"command": ["./other.sh"]}, r"command: .* has './train.sh \{x\}', not './other.sh'"),
        ({"result": "r.json:loss"}, "result: .* has None, not 'r.json:loss'"),
        ({"cost": "seconds"}, "cost: .* has None, not 'seconds'"),
        ({"space": Space({"x": Float(0, 2), "n": Int(1, 5)})}, "space: .* has {"),
    ],
)
def test_another_run_is_not_mixed_in(
    tmp_path: Path, network: KernelNetwork, changes: dict[str, Any], message: str
) -> None:
    folder = RunFolder(tmp_path)
    open_run(folder, network)
    with pytest.raises(ConfigError, match=message + r".* another (file|folder)"):
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
    said = r"another `amortes optimize` .* choose another folder"
    with folder.locked(), pytest.raises(FileError, match=said), folder.locked():
        raise AssertionError("both have the lock")
    with folder.locked():
        pass


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(FileError, match=r"cannot write .*file.run: Not a directory"),
        RunFolder(tmp_path / "file" / "run").locked(),
    ):
        pass


def test_file_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(handle: int, how: int) -> None:
        raise OSError(errno.ENOTSUP, "not here")

    monkeypatch.setattr(fcntl, "flock", flock)
    with RunFolder(tmp_path / "run").locked():
        assert (tmp_path / "run").is_dir()


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
