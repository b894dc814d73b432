"""Many observations: hyperparameters are inferred from some of them, then weighed by all.

A climb on n points takes n^3 operations a step. But a hundred or two say nearly all there is to say
about hyperparameters, so they are inferred from `MOST` points at most: half of them are the best
results, where a model has to be right, the others are evenly spread over the rest in the order they
came in. A few of the particles are then conditioned on everything, and weighed by what the rest
says:

    w_k  <-  w_k p(y | θ_k) / p(y_part | θ_k)

Shapes: b datasets, k particles, n observations, c of which are a part, d dimensions.
"""

import math

import torch
from torch import Tensor

from amortes import linalg
from amortes.nets.kernel.hyperparameters.hyper_posterior import observed_covariance
from amortes.nets.kernel.hyperparameters.particles import Particles, thin
from amortes.prior.gp import GPPrior

MOST = 160
LEAST_PARTICLES = 4


def telling(y: Tensor) -> Tensor:
    """Which of more than `MOST` results y, `b x n`, to infer hyperparameters from: `b x MOST`."""
    best = y.topk(MOST // 2, dim=1).indices
    rest = torch.ones_like(y, dtype=torch.bool).scatter(1, best, False)
    others = rest.nonzero()[:, 1].reshape(len(y), -1)  # b x (n - best), in order
    spread = torch.linspace(0, others.shape[1] - 1, MOST - MOST // 2).round().long()
    return torch.cat([best, others[:, spread]], dim=1).sort(dim=1).values


def weighed_by_all(
    prior: GPPrior, particles: Particles, part_root: Tensor, part: Tensor, X: Tensor, y: Tensor
) -> tuple[Particles, Tensor]:
    """Fewer particles, with the weights that all of X, `b x n x d`, and y, `b x n`, give them.

    `part`, `b x c`, and `part_root`, `b x k x c x c`, are what they were inferred from, and its
    factors. Also returns those of everything, `b x count x n x n`.
    """
    count = max(LEAST_PARTICLES, particles.log_weights.shape[1] * MOST // X.shape[1])
    kept, log_weights = thin(particles.log_weights, min(count, particles.log_weights.shape[1]))
    rows = torch.arange(len(kept))[:, None]
    hyper = particles.hyper[rows, kept]
    root = linalg.cholesky(observed_covariance(prior, hyper, X[:, None]))
    rest = _log_likelihood(prior, root, y)
    rest = rest - _log_likelihood(prior, part_root[rows, kept], y.gather(1, part))
    log_weights = log_weights + rest
    log_evidence = particles.log_evidence + log_weights.logsumexp(-1)
    return Particles(hyper, log_weights.log_softmax(-1), log_evidence), root


def _log_likelihood(prior: GPPrior, root: Tensor, y: Tensor) -> Tensor:
    """log p(y | θ) for factors `b x k x n x n` and results `b x n`: `b x k`."""
    residual = (y - prior.mean.loc)[:, None, :, None].expand(*root.shape[:-1], 1)
    white: Tensor = torch.linalg.solve_triangular(root, residual, upper=False)
    log_det = root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return -0.5 * white.square().sum((-1, -2)) - log_det - 0.5 * y.shape[1] * math.log(2 * math.pi)
