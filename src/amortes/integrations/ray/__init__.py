"""amortes inside Ray Tune: a searcher.

    tune_config = tune.TuneConfig(
        search_alg=AmortesSearch(seed=0), metric="loss", mode="min", num_samples=50
    )
    tune.Tuner(train, param_space=space, tune_config=tune_config).fit()

Needs Ray Tune: `pip install amortes[ray]`.
"""

from amortes.errors import MissingExtraError

try:
    import ray.tune  # noqa: F401
except ImportError as error:
    raise MissingExtraError(
        "amortes.integrations.ray needs Ray Tune, which is not installed: "
        "`pip install amortes[ray]`."
    ) from error

from amortes.integrations.ray.searcher import AmortesSearch

__all__ = ["AmortesSearch"]
