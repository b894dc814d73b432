"""amortes inside Ray Tune: a searcher.

    tune_config = tune.TuneConfig(
        search_alg=AmortesSearch(seed=0), metric="loss", mode="min", num_samples=50
    )
    tune.Tuner(train, param_space=space, tune_config=tune_config).fit()

Needs Ray Tune: `pip install amortes[ray]`.
"""

from amortes.errors import needs_extra

with needs_extra("ray", "amortes.integrations.ray needs Ray Tune"):
    import ray.tune  # noqa: F401

from amortes.integrations.ray.searcher import AmortesSearch

__all__ = ["AmortesSearch"]
