import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from amortes.cli.optimize import optimize
from amortes.errors import ConfigError
from amortes.nets.kernel import KernelNetwork
from amortes.pretrained import weights_path
from amortes.prior.gp import named_prior
from tests.command.conftest import as_default
from tests.command.test_process import gone, wait_for
from tests.optimiser.conftest import untrained

__all__ = ["as_default"]

SPACE = """
[lr]
type = "float"
low = 1e-4
high = 1.0
log = true
[layers]
type = "int"
low = 1
high = 3
"""
TRAIN = "import sys; print('loss:', float(sys.argv[1]) + int(sys.argv[2]))"


@pytest.fixture(scope="module")
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "space.toml").write_text(SPACE)
    return tmp_path


def words(folder: Path, *options: str, code: str = TRAIN) -> list[str]:
    return [
        "--space", str(folder / "space.toml"), "--run", str(folder / "run"),
        "--acquisition", "logei", *options, "--", sys.executable, "-S", "-c", code,
        "{lr}", "{layers}",
    ]  # fmt: skip


def call(folder: Path, *options: str, code: str = TRAIN) -> Result:
    return CliRunner().invoke(optimize, words(folder, *options, code=code))


@pytest.mark.usefixtures("as_default")
def test_it_finds_the_best_and_goes_on(folder: Path) -> None:
    result = call(folder, "--trials", "6")
    assert result.exit_code == 0, result.output
    assert "best result" in result.stdout
    assert "trial 5: " in result.stderr
    files = {path.name for path in (folder / "run").iterdir()}
    assert {"state.json", "trials.csv", "plot.png", "trials"} <= files
    result = call(folder, "--trials", "8", "--json")
    assert "Continuing after 6 trials" in result.stderr
    found = json.loads(result.stdout)
    assert (found["trials"], found["failed"]) == (8, 0)
    config = found["best"]["config"]
    assert found["best"]["value"] == config["lr"] + config["layers"]
    assert found["recommended"]["config"]["layers"] == 1


@pytest.mark.usefixtures("as_default")
def test_violations_and_costs(folder: Path) -> None:
    """Of three numbers of layers two are allowed."""
    code = (
        "import json, os, sys\n"
        "file = open(os.environ['AMORTES_TRIAL_FOLDER'] + '/r.json', 'w')\n"
        "json.dump({'over': 1.5 - int(sys.argv[2])}, file)\n"
        "print(sys.argv[1])"
    )
    options = ["--trials", "9", "--cost", "seconds", "--violation", "r.json:over", "--json"]
    result = call(folder, *options, code=code)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert 0 < found["failed"] < 9
    assert found["best"]["config"]["layers"] > 1
    assert "but a constraint is violated by 0.5" in result.stderr
    header = (folder / "run" / "trials.csv").read_text().splitlines()[0]
    assert header == "trial,status,value,cost,violation,lr,layers,reason"
    result = call(folder, *options[:-3], code=code)
    assert isinstance(result.exception, ConfigError)
    assert "violation: the run in" in str(result.exception)


@pytest.mark.usefixtures("as_default")
def test_it_begins_with_past_results(folder: Path) -> None:
    past = folder / "past.csv"
    past.write_text("lr,layers,value\n0.5,2,-7\n0.25,1,3\n")
    result = call(folder, "--trials", "2", "--start", str(past), "--json")
    assert result.exit_code == 0, result.output
    assert "Starting from 2 past results" in result.stderr
    found = json.loads(result.stdout)
    assert found["trials"] == 2
    assert (found["best"]["number"], found["best"]["value"]) == (0, -7.0)
    assert len((folder / "run" / "trials.csv").read_text().splitlines()) == 5
    # Those do not make up for a command that fails.
    assert call(folder, "--run", str(folder / "b"), "--start", str(past), code="1/0").exit_code == 1


def test_other_weights_by_name(
    folder: Path, network: KernelNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Path] = []

    def as_network(weights: Path, *, gains: bool) -> KernelNetwork:
        loaded.append(weights)
        return network

    monkeypatch.setattr("amortes.optimiser.optimizer.as_network", as_network)
    result = call(folder, "--trials", "1", "--network", "kernel-paper")
    assert result.exit_code == 0, result.output
    assert loaded == [weights_path("kernel-paper")]


@pytest.mark.usefixtures("as_default")
def test_a_command_that_removes_its_folder(folder: Path) -> None:
    code = "import os, shutil; shutil.rmtree(os.environ['AMORTES_TRIAL_FOLDER']); print(1)"
    result = call(folder, "--trials", "1", code=code)
    assert result.exit_code == 1
    assert "it removed stdout.txt" in result.stderr


@pytest.mark.usefixtures("as_default")
def test_nothing_but_failures_is_exit_code_1(folder: Path) -> None:
    result = call(folder, "--trials", "2", code="import sys; sys.exit('no [gpu]')")
    assert result.exit_code == 1
    assert "No number from 2 trials" in result.stderr
    assert "exit code 1: no [gpu]" in result.stderr
    assert str(folder / "run" / "trials" / "0001") in result.stderr
    again = call(folder, "--trials", "2", "--json", code="import sys; sys.exit('no [gpu]')")
    assert again.exit_code == 1
    assert json.loads(again.stdout)["best"] is None


@pytest.mark.usefixtures("as_default")
def test_wrong_usage(folder: Path) -> None:
    assert CliRunner().invoke(optimize, ["--space", "x.toml"]).exit_code == 2
    assert call(folder, "--jobs", "0").exit_code == 2
    assert call(folder, "--timeout", "0").exit_code == 2
    result = call(folder, "--result", "r.json")
    assert isinstance(result.exception, ConfigError)
    assert call(folder, "--trials", "1").exit_code == 0
    result = call(folder, "--trials", "1", "--goal", "maximize")
    assert isinstance(result.exception, ConfigError)


def test_the_help_has_a_complete_example() -> None:
    result = CliRunner().invoke(optimize, ["--help"])
    for text in ("space.toml", "[[constraints]]", "./train.sh {lr} {layers}", "--jobs", "Ctrl-C"):
        assert text in result.output


def start(folder: Path, *options: str, code: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.command.child", "optimize"]
    return subprocess.Popen(
        [*command, *words(folder, *options, code=code)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[2], env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def trials(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "run" / "state.json").read_text())["trials"]
    return found


# The third trial never ends, unless the file is there.
SLOW = (
    "import os, pathlib, sys, time\n"
    "folder = pathlib.Path(os.environ['AMORTES_TRIAL_FOLDER'])\n"
    "(folder / 'pid').write_text(str(os.getpid()))\n"
    "go = folder.parent.parent / 'go'\n"
    "while int(os.environ['AMORTES_TRIAL_NUMBER']) > 1 and not go.exists(): time.sleep(0.01)\n"
    "print(float(sys.argv[1]) + int(sys.argv[2]))"
)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_and_continued(folder: Path, how: signal.Signals) -> None:
    child = start(folder, "--trials", "4", code=SLOW)
    pid_file = folder / "run" / "trials" / "0002" / "pid"
    pid = int(wait_for(lambda: pid_file.exists() and pid_file.read_text(), seconds=60))
    child.send_signal(how)
    _, said = child.communicate(timeout=60)
    assert child.returncode == (-how if how == signal.SIGKILL else 130), said
    wait_for(lambda: gone(pid))
    assert [trial["status"] for trial in trials(folder)] == ["done", "done", "pending"]
    if how != signal.SIGKILL:
        assert "Stopped with 1 trial running" in said
        assert "again to continue" in said
        assert (folder / "run" / "trials.csv").exists()
        return
    before = trials(folder)
    (folder / "run" / "go").touch()
    child = start(folder, "--trials", "4", code=SLOW)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 0, said
    assert "Continuing with 1 trial that had not finished" in said
    after = trials(folder)
    assert [trial["status"] for trial in after] == ["done"] * 4
    assert after[:2] == before[:2]
    assert after[2]["config"] == before[2]["config"]


@pytest.mark.usefixtures("as_default")
def test_a_terminal_sees_the_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr("amortes.cli.optimize.ERR", terminal)
    assert call(folder, "--trials", "3").exit_code == 0
    for words in ("0 of 3 trials", "3 of 3 trials", "layers", "▁"):
        assert words in screen.getvalue()


@pytest.mark.usefixtures("as_default")
def test_failures_are_tried_again_when_asked_to(folder: Path) -> None:
    code = (
        "import pathlib, sys\n"
        f"if not pathlib.Path({str(folder / 'mended')!r}).exists(): sys.exit('out of memory')\n"
        "print(float(sys.argv[1]) + int(sys.argv[2]))"
    )
    result = call(folder, "--trials", "12", code=code)
    assert result.exit_code == 1
    assert "add --retry-failed to the same command" in result.stderr
    (folder / "mended").touch()
    before = json.loads((folder / "run" / "state.json").read_text())["trials"]
    result = call(folder, "--trials", "12", "--retry-failed", "--json", code=code)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["trials"], found["failed"]) == (12, 0)
    after = json.loads((folder / "run" / "state.json").read_text())["trials"]
    assert [t["status"] for t in after[: len(before)]] == ["withdrawn"] * len(before)
    again = after[len(before) : 2 * len(before)]
    assert [t["config"] for t in again] == [t["config"] for t in before]
    assert "is complete: 12 trials" in call(folder, "--trials", "12", code=code).stderr


@pytest.mark.usefixtures("as_default")
def test_a_parameter_no_argument_has_is_said(folder: Path) -> None:
    command = words(folder, "--trials", "2", code="import sys; print(sys.argv[1])")[:-1]
    result = CliRunner().invoke(optimize, command)
    assert result.exit_code == 0, result.output
    assert "the command does not use {layers}" in result.stderr
    assert "$AMORTES_LAYERS" in result.stderr
