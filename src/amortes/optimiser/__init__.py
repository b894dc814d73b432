"""The optimiser: search spaces, ask and tell, and `minimize`."""

from amortes.optimiser.choices import Categorical, Ordinal
from amortes.optimiser.constraints import Allowed, Linear
from amortes.optimiser.explanation import Explanation
from amortes.optimiser.limits import AmortesWarning
from amortes.optimiser.minimize import minimize
from amortes.optimiser.numeric import Float, Int
from amortes.optimiser.optimizer import Optimizer
from amortes.optimiser.prediction import Prediction, Recommendation
from amortes.optimiser.result import Result
from amortes.optimiser.space import Space
from amortes.optimiser.trials import Trial

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
    "minimize",
]
