"""amortes inside Optuna: a sampler.

    study = optuna.create_study(sampler=AmortesSampler(seed=0))
    study.optimize(objective, n_trials=50)

Needs Optuna: `pip install amortes[optuna]`.
"""

from amortes.errors import MissingExtraError

try:
    import optuna  # noqa: F401
except ImportError as error:
    raise MissingExtraError(
        "amortes.integrations.optuna needs Optuna, which is not installed: "
        "`pip install amortes[optuna]`."
    ) from error

from amortes.integrations.optuna.sampler import AmortesSampler

__all__ = ["AmortesSampler"]
