"""One of several workers of a study: `python -m tests.integrations.optuna.worker STORAGE TRIALS`.

STORAGE is a URL, or the path of a journal.
"""

import os
import sys
import time

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from amortes.integrations.optuna import AmortesSampler
from amortes.prior.gp import named_prior
from tests.optimiser.conftest import untrained

STUDY = "shared"


def open_storage(place: str) -> BaseStorage:
    if "://" in place:
        return RDBStorage(place, engine_kwargs={"connect_args": {"timeout": 60}})
    return JournalStorage(JournalFileBackend(place))


def objective(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    trial.set_user_attr("pid", os.getpid())
    time.sleep(0.05)  # an evaluation takes time, in which the others choose
    return (x - 0.3) ** 2 + (y - 0.6) ** 2


def work(place: str, n_trials: int) -> None:
    network = untrained(named_prior("robust"))
    sampler = AmortesSampler(seed=0, network=network, acquisition="logei")
    study = optuna.load_study(study_name=STUDY, storage=open_storage(place), sampler=sampler)
    study.optimize(objective, n_trials=n_trials)


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]))
