"""amortes inside BoTorch: a model, and acquisition functions in closed form.

    model = Surrogate(train_X, train_Y, network=network, bounds=bounds)
    candidate, value = optimize_acqf(JES(model), bounds, q=1, num_restarts=10, raw_samples=128)

Needs BoTorch: `pip install amortes[botorch]`.
"""

from amortes.errors import needs_extra

with needs_extra("botorch", "amortes.integrations.botorch needs BoTorch"):
    import botorch  # noqa: F401

from amortes.integrations.botorch.acquisition import EI, JES, MES, PES, UCB, LogEI, PosteriorMean
from amortes.integrations.botorch.posterior import PredictivePosterior
from amortes.integrations.botorch.surrogate import Surrogate

__all__ = [
    "EI",
    "JES",
    "MES",
    "PES",
    "UCB",
    "LogEI",
    "PosteriorMean",
    "PredictivePosterior",
    "Surrogate",
]
