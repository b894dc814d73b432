"""amortes: Bayesian optimisation for expensive functions.

    from amortes import Float, Int, minimize
    result = minimize(train, {"lr": Float(1e-5, 1e-1, log=True), "layers": Int(1, 8)}, n_trials=40)
    print(result)

Names are imported when they are first used, so that `import amortes` is instant.
"""

import importlib
import importlib.util
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amortes.integrations.botorch import (
        EI,
        JES,
        MES,
        PES,
        UCB,
        LogEI,
        PosteriorMean,
        Surrogate,
    )
    from amortes.optimiser import (
        Allowed,
        AmortesWarning,
        Categorical,
        Explanation,
        Float,
        Int,
        Linear,
        Optimizer,
        Ordinal,
        Prediction,
        Recommendation,
        Result,
        Space,
        Trial,
    )
    from amortes.optimiser.minimize import minimize
    from amortes.pretrained import load_pretrained

__version__ = "0.1.0"

__all__ = [
    "Allowed",
    "AmortesWarning",
    "Categorical",
    "Explanation",
    "Float",
    "Int",
    "Linear",
    "Optimizer",
    "Ordinal",
    "Prediction",
    "Recommendation",
    "Result",
    "Space",
    "Trial",
    "load_pretrained",
    "minimize",
]
# Without the extra they are not there for `from amortes import *`, and asking for one says why.
if TYPE_CHECKING or importlib.util.find_spec("botorch") is not None:
    __all__ += ["EI", "JES", "MES", "PES", "UCB", "LogEI", "PosteriorMean", "Surrogate"]

logging.getLogger(__name__).addHandler(logging.NullHandler())  # quiet unless users want it

_BOTORCH = {"EI", "JES", "LogEI", "MES", "PES", "PosteriorMean", "Surrogate", "UCB"}


def __getattr__(name: str) -> Any:
    if name not in {*__all__, *_BOTORCH}:
        raise AttributeError(f"module 'amortes' has no attribute {name!r}")
    module = "amortes.optimiser"
    if name in _BOTORCH:
        module = "amortes.integrations.botorch"
    elif name == "load_pretrained":
        module = "amortes.pretrained"
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
