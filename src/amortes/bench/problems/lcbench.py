"""LCBench: training neural networks on tabular data (Zimmer, Lindauer & Hutter, TPAMI 2021).

The table has the final validation accuracy, in per cent, of 2,000 configurations of seven
hyperparameters on each data set. The problem is the mean of a Gaussian process fitted to it
(Hvarfner et al., 2025), a smooth function of

    log10 batch_size, max_dropout, log10 max_units, num_layers, log10 learning_rate, momentum,
    weight_decay,

without noise:

    m(x) = y_mean + y_sd (c + k(x, X) (K + s^2 I)^-1 ((y - y_mean) / y_sd - c))

with a Matern-5/2 kernel, a lengthscale for each column, and y_sd over n - 1. The hyperparameters in
`data/lcbench.json` are those published with Ax (MIT) where there are any (car, Fashion-MNIST,
higgs), else from a fit by the same recipe: the maximum of the marginal likelihood times the priors
that Ax's benchmark has, log output variance ~ N(-3, 0.0025^2), log noise variance ~ N(-4, 1), none
on lengthscales and c. The highest values there are by L-BFGS-B from the best 60 of 42,000 points; a
sixth to three quarters of the starts agree to 1e-4. Package `bocode` has the table in float32; that
changes values by less than 1e-5.

The fit is to inputs scaled to the unit cube; in the benchmark its lengthscales are then applied to
inputs that are not scaled. That looks like a mistake, but is what the published numbers are of.
"""

import functools
from importlib import resources

import numpy as np
import torch
from torch import Tensor

from amortes.bench.problems.data import Source, find_source, load_arrays
from amortes.bench.protocol import Kind, Problem
from amortes.files import read_json
from amortes.prior.gp import Hyperparameters
from amortes.prior.kernels import covariance
from amortes.threads import single_thread

TASKS: dict[str, str] = {
    "lcbench-car": "car",
    "lcbench-fashion-mnist": "Fashion-MNIST",
    "lcbench-miniboone": "MiniBooNE",
    "lcbench-higgs": "higgs",
    "lcbench-segment": "segment",
}
LOG10 = [0, 2, 4]  # columns whose logarithms are taken
LOW = (np.log10(16), 0.0, np.log10(64), 1.0, -4.0, 0.1, 1e-5)
HIGH = (np.log10(512), 1.0, np.log10(1024), 4.0, -1.0, 0.99, 0.1)
PACKAGE_COLUMNS = [0, 2, 3, 5, 1, 4, 6]  # of the package's table, in the order above


class TableSurrogate:
    """The posterior mean given a table: X, `n x d`, and y, `n`."""

    def __init__(self, X: Tensor, y: Tensor, hyper: Hyperparameters) -> None:
        self.X, self.hyper = X, hyper
        self.y_mean, self.y_sd = y.mean(), y.std()
        K = covariance("matern52", hyper, X, X)
        L = torch.linalg.cholesky(K + hyper.noise_sd.square() * torch.eye(len(X), dtype=X.dtype))
        residual = (y - self.y_mean) / self.y_sd - hyper.mean
        self.weights = torch.cholesky_solve(residual[:, None], L).squeeze(-1)

    def __call__(self, X: Tensor) -> Tensor:
        """The mean at X, `m x d`: `m`."""
        standard = self.hyper.mean + covariance("matern52", self.hyper, X, self.X) @ self.weights
        return self.y_mean + self.y_sd * standard


class LCBench(Problem):
    """Accuracy in per cent as a function of seven hyperparameters; by name, see `TASKS`."""

    d = len(LOW)
    best: float

    def __init__(self, name: str) -> None:
        self.name = name
        self._surrogate, self.best = _surrogate(find_source(), TASKS[name])

    def value(self, X: Tensor) -> Tensor:
        """Accuracies at X, `m x 7` in the unit cube: `m`."""
        low, high = torch.tensor([LOW, HIGH], dtype=torch.float64)
        return self._surrogate(low + (high - low) * X)


@functools.lru_cache(maxsize=len(TASKS))
def _surrogate(source: Source, task: str) -> tuple[TableSurrogate, float]:
    hyper, highest = published(task)
    with single_thread():
        return TableSurrogate(*read_table(source, task), hyper), highest


def published(task: str) -> tuple[Hyperparameters, float]:
    """Hyperparameters for standardised accuracies, and the highest value."""
    with resources.as_file(resources.files("amortes.bench") / "data" / "lcbench.json") as file:
        known = read_json(file)[task]
    names = ("lengthscale", "outputscale", "noise_variance", "mean_constant")
    values = [torch.tensor(known[name], dtype=torch.float64) for name in names]
    lengthscale, output_variance, noise_variance, mean = values
    hyper = Hyperparameters(lengthscale, output_variance, noise_variance.sqrt(), mean)
    return hyper, known["highest"]


def read_table(source: Source, task: str) -> tuple[Tensor, Tensor]:
    """Configurations, `n x 7`, with logarithms taken, and accuracies, `n`, in float64."""
    if source.is_package:
        name = task.replace("-", "_")
        [table] = load_arrays(source.file("lcbench_data.npz"), [name])
        X, y = table[:, PACKAGE_COLUMNS], table[:, -1]
    else:
        path = source.file("lcbench/lcbench5.npz")
        X, y = load_arrays(path, ["X_raw", f"{task}__final_val_accuracy"])
    X = X.astype(np.float64)
    X[:, LOG10] = np.log10(X[:, LOG10])
    return torch.from_numpy(X), torch.from_numpy(y.astype(np.float64))


KIND = Kind(
    family="lcbench",
    names=tuple(TASKS),
    make=LCBench,
    real=tuple(TASKS),
    group="lcbench",
    labels={name: f"LCBench {task[0].upper()}{task[1:]}, 7-D" for name, task in TASKS.items()},
)
