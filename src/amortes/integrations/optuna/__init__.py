"""amortes inside Optuna: a sampler.

    study = optuna.create_study(sampler=AmortesSampler(seed=0))
    study.optimize(objective, n_trials=50)

Needs Optuna: `pip install amortes[optuna]`.
"""

from amortes.errors import needs_extra

with needs_extra("optuna", "amortes.integrations.optuna needs Optuna"):
    import optuna  # noqa: F401

from amortes.integrations.optuna.sampler import AmortesSampler

__all__ = ["AmortesSampler"]
