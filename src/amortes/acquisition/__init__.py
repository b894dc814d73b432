"""What to evaluate next: a network fitted to data, scores of points, the search for their best."""

from amortes.acquisition.climb import Score, differentiate, with_gradient
from amortes.acquisition.domain import Domain
from amortes.acquisition.fitted import SCORES, Fitted
from amortes.acquisition.pool import FoundInPool, maximise_pool
from amortes.acquisition.search import TO_THE_TOP, USUAL, Found, SearchConfig, evaluate, maximise

__all__ = [
    "SCORES",
    "TO_THE_TOP",
    "USUAL",
    "Domain",
    "Fitted",
    "Found",
    "FoundInPool",
    "Score",
    "SearchConfig",
    "differentiate",
    "evaluate",
    "maximise",
    "maximise_pool",
    "with_gradient",
]
