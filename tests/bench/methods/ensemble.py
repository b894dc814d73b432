"""A fully Bayesian model with made-up hyperparameter samples, and its members one by one."""

import torch
from botorch.models import SingleTaskGP
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean
from torch import Tensor

from amortes.bench.methods.paper_gp import PaperGP, jax_for_benchmarks
from amortes.random import generator

MEMBERS = 16


def made_up(d: int = 2, n: int = 12) -> tuple[PaperGP, list[SingleTaskGP]]:
    """The model, and MEMBERS ordinary ones with the same hyperparameters and data."""
    rng = generator(d, n)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    X = torch.rand(n, d, generator=rng, dtype=torch.float64)
    y = (4.0 * X).sin().sum(-1, keepdim=True) + 0.1 * normal(n, 1)
    y = (y - y.mean()) / y.std()
    lengthscale = (0.4 * normal(MEMBERS, d) - 1.0).exp()
    # The first two are below BoTorch's least noise.
    noise = torch.cat([torch.tensor([5e-6, 5e-5]).double(), (normal(MEMBERS - 2) - 4.0).exp()])
    mean = 0.5 * normal(MEMBERS)
    with jax_for_benchmarks():
        model = PaperGP(X, y)
        model.load_mcmc_samples({"lengthscale": lengthscale, "noise": noise, "mean": mean})
    members = []
    for j in range(MEMBERS):
        kernel, constant = RBFKernel(ard_num_dims=d).double(), ConstantMean().double()
        kernel.lengthscale, constant.constant = lengthscale[j], mean[j]
        floor = GreaterThan(1e-6, transform=None, initial_value=noise[j])
        likelihood = GaussianLikelihood(noise_constraint=floor).double()
        member = SingleTaskGP(
            X,
            y,
            likelihood=likelihood,
            covar_module=kernel,
            mean_module=constant,
            outcome_transform=None,
        )
        members.append(member.eval().requires_grad_(False))
    return model.eval().requires_grad_(False), members
