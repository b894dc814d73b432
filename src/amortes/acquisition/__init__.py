"""What to evaluate next: a network fitted to data, scores of points, the search for their best."""

from amortes.acquisition.domain import Domain
from amortes.acquisition.fitted import SCORES, Fitted
from amortes.acquisition.pool import Found, FoundInPool, maximise_pool
from amortes.acquisition.search import TO_THE_TOP, SearchConfig, maximise

__all__ = [
    "SCORES",
    "TO_THE_TOP",
    "Domain",
    "Fitted",
    "Found",
    "FoundInPool",
    "SearchConfig",
    "maximise",
    "maximise_pool",
]
