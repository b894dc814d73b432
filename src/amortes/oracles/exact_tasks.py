"""Datasets drawn from the prior exactly, for references where there is next to no noise.

A path of finitely many features (`amortes.prior.paths`) is Gaussian, but its covariance is the
kernel's only on average, and up to a few per cent. Results without noise tell the two apart: the
posterior given many of them is that of no function of the prior. So results are drawn jointly,

    y = m + L e,    L L^T = K + s^2 I,    e ~ N(0, I).

A row of L depends on its own point and those before it, so that points are placed as in any other
trace, by looking at the results so far. There is no function to maximise, hence no optimum.
"""

import math

import torch
from torch import Tensor

from amortes import linalg
from amortes.prior.gp import GPPrior
from amortes.prior.kernels import covariance
from amortes.prior.newton import Optimum
from amortes.prior.posterior import exact_posterior
from amortes.prior.tasks import TaskBatch, TaskConfig
from amortes.prior.traces import Tracer
from amortes.random import derive_seeds, generator


def exact_task(prior: GPPrior, seed: int, d: int, n: int, config: TaskConfig) -> TaskBatch:
    """Datasets with the hyperparameters that `TaskStream.batch_of(0, d, n)` has.

    Values at the queries and the optimum are NaN, and no query is placed by looking at the optimum.
    """
    b, q = config.batch_size, config.num_queries
    hyper = prior.sample(derive_seeds(seed, 0, d, n, 1, count=2 * b)[:b], d)
    rng = generator(seed, 0, d, n, 2)
    tracer = Tracer(b, d, config.trace, rng)
    e = torch.randn(b, n, generator=rng, dtype=torch.float64)
    X, y = e.new_empty(b, 0, d), e.new_empty(b, 0)

    def observe(x: Tensor) -> Tensor:
        nonlocal X, y
        X = torch.cat([X, x.double()], dim=1)
        K = covariance(prior.kernel, hyper, X, X)
        K.diagonal(dim1=-2, dim2=-1).add_(hyper.noise_sd.square()[:, None])
        row = linalg.cholesky(K)[:, -1]
        new = hyper.mean + (row * e[:, : X.shape[1]]).sum(-1)
        y = torch.cat([y, new[:, None]], dim=1)
        return y[:, -1:].to(x.dtype)

    points, _ = tracer.context(n, n + q, observe)
    # What places queries near the optimum places them near the first point, a random one, instead.
    Xq = tracer.queries(q, n + q, points, points[:, 0])[0].double()
    mean, variance = exact_posterior(prior.kernel, hyper, X, y, Xq)
    fq, nowhere = torch.full_like(mean, math.nan), torch.full_like(X[:, 0], math.nan)
    return TaskBatch(
        X=X,
        y=y,
        Xq=Xq,
        near_optimum=torch.zeros_like(fq, dtype=torch.bool),
        fq=fq,
        optimum=Optimum(nowhere, nowhere[:, 0]),
        hyper=hyper,
        posterior_mean=mean,
        posterior_variance=variance,
    )
