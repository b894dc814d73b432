import math

import numpy as np
import torch
from sklearn.gaussian_process.kernels import RBF, Matern

from amortes.oracles.exact_tasks import exact_task
from amortes.prior.gp import GPPrior, Marginal
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream

NOISE = 1e-4
QUIET = GPPrior(
    kernel="mixed",
    lengthscale=Marginal.fixed(0.4),
    noise_sd=Marginal.fixed(NOISE),
    mean=Marginal.fixed(0.3),
    rough_odds=Marginal.fixed(0.25),
)
CONFIG = TaskConfig(batch_size=32, num_queries=8)


def per_result(task: TaskBatch) -> float:
    """Squared Mahalanobis length of the results per result; 1 on average, by chi-square."""
    total = 0.0
    for X, y in zip(task.X.numpy(), task.y.numpy(), strict=True):
        K = 0.8 * RBF(0.4)(X) + 0.2 * Matern(0.4, nu=2.5)(X) + NOISE**2 * np.eye(len(X))
        total += (y - 0.3) @ np.linalg.solve(K, y - 0.3)
    return total / task.y.numel()


def test_results_are_draws_of_the_process() -> None:
    """Paths of features are not: they are smoother, 0.75 here."""
    error = math.sqrt(2 / (CONFIG.batch_size * 40))
    assert abs(per_result(exact_task(QUIET, 1, 1, 40, CONFIG)) - 1.0) < 4 * error
    assert per_result(TaskStream(QUIET, 1, CONFIG).batch_of(0, 1, 40)) < 1.0 - 5 * error


def test_points_follow_results() -> None:
    """Late points lie closer to the best result than to another one."""
    task = exact_task(QUIET, 2, 2, 30, CONFIG)
    rows = torch.arange(len(task.X))
    best, other = task.X[rows, task.y.argmax(1)], task.X[rows, task.y.argmin(1)]
    near, far = ((task.X[:, 10:] - x[:, None]).norm(dim=-1).median() for x in (best, other))
    assert near < far


def test_hyperparameters_are_those_of_paths_and_nothing_is_random() -> None:
    prior = GPPrior()
    one, two = (exact_task(prior, 3, 2, 5, CONFIG) for _ in range(2))
    assert torch.equal(one.X, two.X)
    assert torch.equal(one.y, two.y)
    paths = TaskStream(prior, 3, CONFIG).batch_of(0, 2, 5)
    assert torch.equal(one.hyper.lengthscale, paths.hyper.lengthscale)
    assert not one.near_optimum.any()
