"""amortes inside BoTorch: a model, and acquisition functions in closed form.

    model = Surrogate(train_X, train_Y, network=network, bounds=bounds)
    candidate, value = optimize_acqf(JES(model), bounds, q=1, num_restarts=10, raw_samples=128)

Needs BoTorch: `pip install amortes[botorch]`.
"""

from amortes.errors import MissingExtraError

try:
    import botorch  # noqa: F401
except ImportError as error:
    raise MissingExtraError(
        "amortes.integrations.botorch needs BoTorch, which is not installed: "
        "`pip install amortes[botorch]`."
    ) from error

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
