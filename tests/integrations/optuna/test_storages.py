import math
import subprocess
import sys
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from tests.integrations.optuna import worker
from tests.integrations.optuna.conftest import Make


def place(kind: str, folder: Path) -> str:
    return f"sqlite:///{folder}/study.db" if kind == "sqlite" else str(folder / "journal.log")


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_two_processes_share_a_study(kind: str, tmp_path: Path) -> None:
    storage = worker.open_storage(place(kind, tmp_path))
    study = optuna.create_study(study_name=worker.STUDY, storage=storage)
    command = [sys.executable, "-m", worker.__name__, place(kind, tmp_path), "8"]
    workers = [
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])
        for _ in range(2)
    ]
    errors = [process.communicate(timeout=120)[1] for process in workers]
    assert [process.returncode for process in workers] == [0, 0], "\n".join(errors)
    trials = study.get_trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 16
    assert len({trial.user_attrs["pid"] for trial in trials}) == 2
    # Both have the same seed, and yet points differ; but one of two that choose at the same moment
    # may see a result that the other has not seen, and come to what that one chose.
    points = [tuple(trial.params.values()) for trial in trials]
    near = [math.dist(a, b) < 1e-5 for i, a in enumerate(points) for b in points[:i]]
    assert sum(near) <= 3
    # Each learns from both.
    assert study.best_value < 1e-2


def test_storages_make_no_difference(make: Make, tmp_path: Path) -> None:
    chosen = []
    for storage in (
        None,
        *(worker.open_storage(place(k, tmp_path)) for k in ("sqlite", "journal")),
    ):
        study = optuna.create_study(storage=storage, sampler=make())
        study.optimize(worker.objective, n_trials=6)
        chosen.append([trial.params for trial in study.trials])
    assert chosen[0] == chosen[1] == chosen[2]
