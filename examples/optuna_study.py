"""The sampler inside Optuna: `python examples/optuna_study.py`.

Needs `pip install amortes[optuna]`. The objective is an ordinary one; here one parameter exists
only for one choice of another.
"""

import math
import sys

import optuna

from amortes.integrations.optuna import AmortesSampler


def objective(trial: optuna.Trial) -> float:
    """The smallest value is 0, with momentum 0.9 and a learning rate of 0.01."""
    lr = trial.suggest_float("lr", 1e-5, 1.0, log=True)
    loss = (math.log10(lr) + 2.0) ** 2
    if trial.suggest_categorical("optimiser", ["sgd", "adam"]) == "adam":
        return loss + 0.2
    return loss + 4.0 * (trial.suggest_float("momentum", 0.0, 0.99) - 0.9) ** 2


def main(n_trials: int = 30) -> None:
    """Run a study, and print its best trial."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="minimize", sampler=AmortesSampler(seed=0))
    study.optimize(objective, n_trials=n_trials)
    print(f"best of {n_trials}: {study.best_value:.4f} with {study.best_params}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
