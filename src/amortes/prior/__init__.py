"""The source of training tasks: functions drawn from a Gaussian-process prior, and their maxima."""

from amortes.prior.gp import PRIORS, GPPrior, Hyperparameters, Marginal, named_prior
from amortes.prior.newton import NewtonConfig, Optimum, maximise_paths
from amortes.prior.paths import Paths
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.prior.traces import TraceConfig

__all__ = [
    "PRIORS",
    "GPPrior",
    "Hyperparameters",
    "Marginal",
    "NewtonConfig",
    "Optimum",
    "Paths",
    "TaskBatch",
    "TaskConfig",
    "TaskStream",
    "TraceConfig",
    "maximise_paths",
    "named_prior",
]
