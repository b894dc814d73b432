"""Functions to be maximised: synthetic ones, tables, real models, draws from a prior."""

from amortes.bench.problems.hpob import HPOB
from amortes.bench.problems.lcbench import LCBench
from amortes.bench.problems.models import ModelTuning
from amortes.bench.problems.prior import PriorFunction
from amortes.bench.problems.registry import PROBLEMS, make_problem
from amortes.bench.problems.synthetic import Synthetic

__all__ = [
    "HPOB",
    "PROBLEMS",
    "LCBench",
    "ModelTuning",
    "PriorFunction",
    "Synthetic",
    "make_problem",
]
