"""Many runs: in parallel, one writer, any number of restarts.

Workers compute runs and hand the text of their files to the process that called `sweep`, which
alone writes. A run is the unit of work: it is there, whole, or it is not; a sweep that was stopped,
however rudely, goes on with those that are missing. A run that raises an error leaves its traceback
and does not stop the others; it is not tried again unless asked for.

Weights may change while their name stays. A run records a digest of those it was made with, and a
sweep that would add runs with others to it stops before it begins.

`environment.json` describes the latest session of a sweep; sessions before it that differ in
anything but the date are kept under "earlier".
"""

import contextlib
import datetime
import importlib.metadata
import os
import platform
import subprocess
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import amortes
from amortes.bench.problems.registry import make_problem
from amortes.bench.protocol import MethodFactory, Problem, optimise, weights_digest
from amortes.bench.results import ENVIRONMENT, PlannedRun, ResultsFolder, run_csv
from amortes.engines import Engine, Made
from amortes.errors import ConfigError, FileError
from amortes.files import read_json, write_json

PACKAGES = (
    *("torch", "botorch", "gpytorch", "jax", "numpyro", "optuna", "smac", "HEBO"),
    *("scikit-learn", "numpy"),
)

ProblemMaker = Callable[[str], Problem]
MethodMaker = Callable[[str], MethodFactory]


def named_method(name: str) -> MethodFactory:
    """The method of this name; imports what methods need, which takes seconds, only now."""
    from amortes.bench.methods.registry import method_factory

    return method_factory(name)


def commit() -> str:
    """The commit of the checkout that amortes is imported from, "+" if changed; "" if none."""
    file = Path(amortes.__file__)
    folder = file.parent
    try:
        # An installed package may lie in the ignored environment of another project.
        _git(folder, "ls-files", "--error-unmatch", file.name)
        head = _git(folder, "rev-parse", "--short=12", "HEAD")
        # Tests and notes may change without changing results.
        return head + ("+" if _git(folder, "status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def describe() -> dict[str, Any]:
    """What there is to know about this machine and installation."""
    return {
        "amortes": amortes.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "system": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def write_environment(path: Path) -> dict[str, Any]:
    """Write or update the file; returns what it says about now."""
    now = describe()
    earlier: list[dict[str, Any]] = []
    with contextlib.suppress(FileError):
        before = read_json(path)
        earlier = before.pop("earlier", [])
        if {**before, "date": ""} != {**now, "date": ""}:
            earlier.append(before)
    write_json(path, now | {"earlier": earlier})
    return now


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Heard once at the start (without a run), then after every run."""

    done: int  # runs that need no work any more, failed ones included
    total: int
    run: PlannedRun | None = None
    failure: Path | None = None  # where the traceback is, if the run failed
    seconds_left: float | None = None  # if the runs to come take as long as those of this session


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a sweep did, and what there is now."""

    finished: int  # of the runs asked for
    made: int  # of these, in this session
    failures: list[Path]  # of the runs asked for
    seconds: float


def sweep(
    folder: Path,
    runs: Sequence[PlannedRun],
    *,
    engine: Engine,
    problem_maker: ProblemMaker = make_problem,
    method_maker: MethodMaker = named_method,
    retry_failed: bool = False,
    progress: Callable[[Progress], None] = lambda heard: None,
) -> Summary:
    """Make all runs that are missing, in the order given; merge all there are.

    The makers must be picklable if the engine has other processes.
    """
    begin = time.perf_counter()
    results = ResultsFolder(folder)
    with results.locked():
        results.clear_temporary()
        digests = {}  # of the weights of each method, as they are now
        for method in dict.fromkeys(run.method for run in runs):
            with contextlib.suppress(Exception):  # of whatever kind: its runs will say it
                digests[method] = weights_digest(method_maker(method))
        _check_weights(results, digests)
        missing = [run for run in runs if not results.finished(run)]
        todo = [run for run in missing if retry_failed or not results.failed(run)]
        commit = write_environment(results.path / ENVIRONMENT)["commit"]
        task = partial(_perform, todo, problem_maker, method_maker, commit, digests)
        done = len(runs) - len(todo)
        progress(Progress(done=done, total=len(runs)))
        try:
            # Closing the generator stops the workers, whatever goes wrong here.
            with contextlib.closing(engine(task, range(len(todo)))) as outcomes:
                for count, (index, (text, error)) in enumerate(outcomes, start=1):
                    failure = results.put_failure(todo[index], error) if error else None
                    if not error:
                        results.put(todo[index], text)
                    rate = (time.perf_counter() - begin) / count
                    heard = Progress(
                        done=done + count,
                        total=len(runs),
                        run=todo[index],
                        failure=failure,
                        seconds_left=rate * (len(todo) - count),
                    )
                    progress(heard)
        finally:
            results.merge()
        failures = [run for run in missing if results.failed(run)]
    return Summary(
        finished=len(runs) - len(failures),
        made=len(missing) - len(failures),
        failures=[results.failure_file(run) for run in failures],
        seconds=time.perf_counter() - begin,
    )


def _check_weights(results: ResultsFolder, digests: Mapping[str, str]) -> None:
    """Refuse a folder with runs of other weights.

    All runs of a method that are there count, also those that are not asked for now.
    """
    there = results.weights()
    changed = {
        method: f"{method} (then {', '.join(sorted(others))}, now {now})"
        for method, now in digests.items()
        if (others := there.get(method, set()) - {now})
    }
    if changed:
        raise ConfigError(
            f"Runs in {results.path} were made with weights that have changed since: "
            f"{', '.join(changed.values())}. Choose another folder for the results, or delete the "
            f"runs of {', '.join(changed)} in {results.path / 'runs'} to make them anew."
        )


def _perform(
    runs: Sequence[PlannedRun],
    problem_maker: ProblemMaker,
    method_maker: MethodMaker,
    commit: str,
    digests: Mapping[str, str],
    index: int,
) -> Made:
    """Do one run; its result is the file of the run and the traceback, one of them empty."""
    run = runs[index]
    try:
        problem, factory = problem_maker(run.problem), method_maker(run.method)
        weights = weights_digest(factory)
        if weights != digests.get(run.method, weights):
            raise ConfigError(
                f"{run.method}: the weights here ({weights}) are not those that the sweep began "
                f"with ({digests[run.method]})."
            )
        records = optimise(problem, factory, seed=run.seed, iterations=run.iterations)
        version = amortes.__version__
        text = run_csv(run, problem, records, version=version, commit=commit, weights=weights)
    except Exception:  # of whatever kind: the others go on
        return index, ("", traceback.format_exc())
    return index, (text, "")
