import json
import sys
from pathlib import Path
from typing import Any

import pytest

from amortes.command import run as command_run
from amortes.command.folder import RunFolder
from amortes.command.outcome import Sources
from amortes.command.run import CommandRun, Plan
from amortes.command.template import Template
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Float, Optimizer, Space, Trial
from amortes.optimiser.minimize import HOPELESS
from tests.command.test_process import gone, wait_for

SPACE = Space({"x": Float(0, 1)})


def make(
    folder: Path,
    network: KernelNetwork,
    code: str,
    *,
    trials: int = 4,
    optimizer: Optimizer | None = None,
    **rest: Any,
) -> CommandRun:
    template = Template([sys.executable, "-S", "-c", code, "{x}"], SPACE)
    optimizer = optimizer or Optimizer(SPACE, acquisition="logei", network=network, initial=3)
    plan = Plan(template=template, trials=trials, **rest)
    return CommandRun(optimizer, RunFolder(folder), plan)


def go(run: CommandRun, stop_after: int | None = None) -> list[Trial]:
    """Run; returns the trials in the order they ended."""
    ended: list[Trial] = []
    for some in run.evaluate(interrupted=lambda: len(ended) == stop_after):
        ended.extend(some)
    return ended


def test_values_are_told_and_saved(tmp_path: Path, network: KernelNetwork) -> None:
    run = make(tmp_path, network, "import sys; print('x'); print(float(sys.argv[1]) ** 2)")
    ended = go(run)
    assert [trial.number for trial in ended] == [0, 1, 2, 3]
    for trial in ended:
        assert trial.value == trial["x"] ** 2
        config = json.loads((run.folder.trial(trial.number) / "config.json").read_text())
        assert config == trial.config
    assert Optimizer.load(run.folder.state, network=network).trials == run.trials == ended


def test_jobs_run_at_the_same_time(tmp_path: Path, network: KernelNetwork) -> None:
    # Each waits until it sees another one under way.
    meet = (
        "import os, pathlib, sys, time\n"
        "folder = pathlib.Path(os.environ['AMORTES_TRIAL_FOLDER'])\n"
        "number = int(os.environ['AMORTES_TRIAL_NUMBER'])\n"
        "(folder / 'here').touch()\n"
        "partner = folder.parent / f'{number ^ 1:04d}' / 'here'\n"
        "while not partner.exists(): time.sleep(0.01)\n"
        "print(sys.argv[1])"
    )
    ended = go(make(tmp_path, network, meet, jobs=2, timeout=20))
    assert sorted(trial.number for trial in ended) == [0, 1, 2, 3]
    assert all(trial.status == "done" for trial in ended)


def test_failures_have_reasons(tmp_path: Path, network: KernelNetwork) -> None:
    code = (
        "import os, sys, time\n"
        "n = int(os.environ['AMORTES_TRIAL_NUMBER'])\n"
        "if n == 0: sys.exit('no memory')\n"
        "if n == 1: time.sleep(60)\n"
        "print('nan' if n == 2 else 'done' if n == 3 else n)"
    )
    run = make(tmp_path, network, code, trials=5, jobs=2, timeout=2)
    go(run)
    assert [trial.reason for trial in run.trials] == [
        "exit code 1: no memory",
        "took longer than 2 seconds",
        "the value was nan",
        "its last line is 'done', not a number",
        None,
    ]
    assert [trial.status for trial in run.trials] == ["failed"] * 4 + ["done"]


def test_odd_trials_do_not_end_the_run(tmp_path: Path, network: KernelNetwork) -> None:
    code = (
        "import os, shutil, sys\n"
        "if os.environ['AMORTES_TRIAL_NUMBER'] == '1':\n"
        "    shutil.rmtree(os.environ['AMORTES_TRIAL_FOLDER'])\n"
        "print(sys.argv[1])"
    )
    run = make(tmp_path, network, code, trials=3)
    go(run)
    assert [trial.status for trial in run.trials] == ["done", "failed", "done"]
    assert "removed stdout.txt" in (run.trials[1].reason or "")


def test_the_stubborn_are_killed_without_waiting_for_each_other(
    tmp_path: Path, network: KernelNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import pathlib, os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "here = pathlib.Path(os.environ['AMORTES_TRIAL_FOLDER'])\n"
        "while True:\n"
        "    (here / 'alive').touch()\n"
        "    time.sleep(0.05)"
    )
    monkeypatch.setattr(command_run, "GRACE", 3.0)
    run = make(tmp_path, network, code, jobs=4, timeout=2)
    assert {trial.reason for trial in go(run)} == {"took longer than 2 seconds"}
    died = [(run.folder.trial(i) / "alive").stat().st_mtime for i in range(4)]
    assert max(died) - min(died) < 2 * 3.0  # in turn it would be three times


def test_what_is_left_in_the_background_is_stopped(tmp_path: Path, network: KernelNetwork) -> None:
    code = (
        "import subprocess, sys\n"
        "left = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'])\n"
        "print(left.pid)"
    )
    (trial,) = go(make(tmp_path, network, code, trials=1))
    assert trial.value is not None
    pid = int(trial.value)
    wait_for(lambda: gone(pid), seconds=10)


def test_results_from_a_file(tmp_path: Path, network: KernelNetwork) -> None:
    code = (
        "import json, os, sys\n"
        "file = open(os.environ['AMORTES_TRIAL_FOLDER'] + '/r.json', 'w')\n"
        "json.dump({'test': {'loss': float(sys.argv[1])}}, file)"
    )
    sources = Sources.parse("r.json:test.loss", None, None)
    run = make(tmp_path, network, code, trials=2, sources=sources)
    assert all(trial.value == trial["x"] for trial in go(run))


def test_costs_and_violations_are_told(tmp_path: Path, network: KernelNetwork) -> None:
    """More of them than failures that make a run hopeless; they are not tried again."""
    code = (
        "import json, os, sys\n"
        "file = open(os.environ['AMORTES_TRIAL_FOLDER'] + '/r.json', 'w')\n"
        "json.dump({'loss': 1.0, 'over': float(sys.argv[1]), 'price': 2.0}, file)"
    )
    sources = Sources.parse("r.json:loss", "r.json:price", "r.json:over")
    run = make(tmp_path, network, code, trials=HOPELESS + 2, sources=sources)
    ended = go(run)
    assert len(ended) == HOPELESS + 2
    assert all(trial.violation == trial["x"] and trial.cost == 2.0 for trial in ended)
    assert {trial.status for trial in ended} == {"failed"}
    again = CommandRun(run.optimizer, run.folder, run.plan, retry_failed=True)
    assert again.complete


def test_crashes_that_violate_nothing_are_failures(tmp_path: Path, network: KernelNetwork) -> None:
    code = (
        "import os\n"
        "open(os.environ['AMORTES_TRIAL_FOLDER'] + '/r.json', 'w').write('{\"over\": -1}')\n"
        "1/0"
    )
    sources = Sources.parse(None, None, "r.json:over")
    run = make(tmp_path, network, code, trials=100, sources=sources)
    assert len(go(run)) == HOPELESS
    assert run.hopeless
    again = CommandRun(run.optimizer, run.folder, run.plan, retry_failed=True)
    assert again.count == 0


def test_past_results_do_not_count_as_trials(tmp_path: Path, network: KernelNetwork) -> None:
    past = [({"x": 0.2}, 1.0), ({"x": 0.4}, float("nan"))]
    optimizer = Optimizer(SPACE, acquisition="logei", network=network, initial=3, start=past)
    run = make(tmp_path, network, "print(3)", trials=2, optimizer=optimizer)
    assert [trial.number for trial in go(run)] == [2, 3]
    assert (run.count, run.complete) == (2, True)
    again = CommandRun(optimizer, run.folder, run.plan, retry_failed=True)
    assert [trial.status for trial in again.trials] == ["done", "failed", "done", "done"]


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path, network: KernelNetwork) -> None:
    code = "import sys; print(sys.argv[1])"
    straight = make(tmp_path / "a", network, code, trials=6)
    go(straight)
    broken = make(tmp_path / "b", network, code, trials=6)
    assert len(go(broken, stop_after=2)) == 2
    loaded = Optimizer.load(broken.folder.state, network=network)
    resumed = make(tmp_path / "b", network, code, trials=6, optimizer=loaded)
    go(resumed)
    assert resumed.trials == straight.trials


def test_what_was_under_way_is_stopped_and_evaluated_again(
    tmp_path: Path, network: KernelNetwork
) -> None:
    slow = make(tmp_path, network, "import time; time.sleep(60)", jobs=2)
    looks = iter(range(3))
    for _ in slow.evaluate(interrupted=lambda: next(looks, None) is None):
        pass
    assert len(slow.running) == 2
    assert all(process.poll() is not None for process in slow.running.values())
    loaded = Optimizer.load(slow.folder.state, network=network)
    assert [trial.status for trial in loaded.trials] == ["pending"] * 2
    (slow.folder.trial(0) / "left over").touch()
    resumed = make(tmp_path, network, "print(1)", trials=3, optimizer=loaded)
    assert [trial.number for trial in go(resumed)] == [0, 1, 2]
    assert [t.config for t in resumed.trials][:2] == [t.config for t in loaded.trials][:2]
    assert not (slow.folder.trial(0) / "left over").exists()


def test_hopeless_runs_end(tmp_path: Path, network: KernelNetwork) -> None:
    run = make(tmp_path, network, "1/0", trials=100, jobs=2)
    ended = go(run)
    assert HOPELESS <= len(ended) <= HOPELESS + 1
    assert run.hopeless
    assert {trial.reason for trial in ended} == {"exit code 1: ZeroDivisionError: division by zero"}


def test_commands_that_cannot_start_fail(tmp_path: Path, network: KernelNetwork) -> None:
    script = tmp_path / "train"
    script.write_bytes(b"\x7fELFnot a program")
    script.chmod(0o755)
    optimizer = Optimizer(SPACE, acquisition="logei", network=network)
    plan = Plan(template=Template([str(script)], SPACE), trials=2)
    ended = go(CommandRun(optimizer, RunFolder(tmp_path / "run"), plan))
    assert len(ended) == 2
    assert all((trial.reason or "").startswith(f"could not start {script}") for trial in ended)
