"""BoTorch's PES, GIBBON and JES, averaged over exact hyperparameter draws: what we compare with.

BoTorch approximates the conditional entropy of one GP with known hyperparameters: by expectation
propagation (PES), or by truncating p(f(x)) at the maximum (GIBBON for MES; JES after conditioning
on the optimum). Fully Bayesian use averages the acquisition over hyperparameters, which is done
here for a few draws of `amortes.oracles.smc`, each with optima drawn from its own exact posterior.
So BoTorch gets better samples here than it makes for itself.

Needs the extra `botorch`.
"""

import warnings
from typing import Any

import torch
from torch import Tensor

from amortes.errors import needs_extra
from amortes.oracles.brute_force import BruteForceConfig, sample_functions
from amortes.oracles.smc import PosteriorDraws, hyper_posterior
from amortes.prior.gp import GPPrior
from amortes.random import generator

HYPERPARAMETERS = 8
OPTIMA = 64  # draws of the optimum for each of them


def botorch_gains(prior: GPPrior, X: Tensor, y: Tensor, Xq: Tensor, seed: int) -> Tensor:
    """BoTorch's PES, GIBBON and JES at Xq, `q x d`, given X, `n x d`, and y, `n`: `q x 3`."""
    instead = ", or leave the comparison out with --no-botorch"
    with needs_extra("botorch", "a comparison with BoTorch needs it", instead):
        from botorch.acquisition import qLowerBoundMaxValueEntropy
        from botorch.acquisition.joint_entropy_search import qJointEntropySearch
        from botorch.acquisition.predictive_entropy_search import qPredictiveEntropySearch
    rng = generator(seed)
    posterior = hyper_posterior(prior, X[None], y[None], rng).thinned(HYPERPARAMETERS)
    config = BruteForceConfig(
        functions=HYPERPARAMETERS * OPTIMA, hyperparameters=HYPERPARAMETERS, leaf=OPTIMA
    )
    samples = sample_functions(posterior, Xq, config, rng)
    optima = zip(*(torch.split(t, OPTIMA) for t in (samples.x_star, samples.f_star)), strict=True)
    points = Xq.double()[:, None]
    total = torch.zeros(len(Xq), 3, dtype=torch.float64)
    # BoTorch draws from torch's global generator and warns about data that are not standardised.
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]), torch.no_grad():
        warnings.simplefilter("ignore")
        for i, (x_star, f_star) in enumerate(optima):
            model = _model(posterior, y, i)
            pes = qPredictiveEntropySearch(model, x_star)
            mes = qLowerBoundMaxValueEntropy(model, x_star, num_mv_samples=OPTIMA)
            mes.posterior_max_values = f_star[:, None]  # exact draws for its Gumbel ones
            jes = qJointEntropySearch(model, x_star, f_star[:, None])
            total += torch.stack([acq(points) for acq in (pes, mes, jes)], dim=-1)
    return total / HYPERPARAMETERS


def _model(posterior: PosteriorDraws, y: Tensor, i: int) -> Any:
    """A BoTorch GP with the hyperparameters of draw i, its constant mean integrated out."""
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import ConstantKernel, MaternKernel, RBFKernel, ScaleKernel
    from gpytorch.means import ConstantMean

    gp, hyper = posterior.gp, posterior.hyper[0, i]
    base = RBFKernel if gp.prior.kernel == "se" else MaternKernel
    shape = base(ard_num_dims=gp.d)
    shape.lengthscale = hyper.lengthscale
    signal = ScaleKernel(shape)
    signal.outputscale = hyper.output_variance
    mean = ConstantMean()
    mean.constant = gp.prior.mean.loc
    kernel: Any = signal
    if gp.mean_variance > 0.0:
        offset = ConstantKernel()
        offset.constant = torch.tensor(gp.mean_variance)
        kernel = signal + offset
    targets = y.double()[:, None]
    model = SingleTaskGP(
        gp.X[0],
        targets,
        hyper.noise_sd.square().expand_as(targets),
        covar_module=kernel.double(),
        mean_module=mean.double(),
        outcome_transform=None,
    )
    return model.eval()
