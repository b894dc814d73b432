"""A Gaussian process with the most probable hyperparameters: what most users of BoTorch have.

BoTorch 0.18's `SingleTaskGP` with its default priors (Hvarfner et al., Vanilla Bayesian
Optimization Performs Great in High Dimensions, ICML 2024): SE kernel without output scale,
l_k ~ LogNormal(sqrt 2 + log(d) / 2, sqrt 3) and at least 0.025, noise variance ~ LogNormal(-4, 1)
and at least 1e-4, on standardised y. Fitted by `fit_gpytorch_mll`.

map-logei   analytic LogEI over the best posterior mean at an observed point. With noise the best
            observation would be a lucky draw.
map-lognei  `qLogNoisyExpectedImprovement` over all observed points, for noise
botorch     what a careful user takes: map-lognei if there is noise, else map-logei
map-gibbon  `qLowerBoundMaxValueEntropy` with `SAMPLES` maxima (Gumbel approximation)
map-jes     `qJointEntropySearch` with `SAMPLES` optima from `get_optimal_samples`

Needs the extra `botorch`.
"""

from botorch.acquisition import (
    AcquisitionFunction,
    LogExpectedImprovement,
    qLogNoisyExpectedImprovement,
    qLowerBoundMaxValueEntropy,
)
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from amortes.acquisition import Score, evaluate
from amortes.acquisition.units import Units
from amortes.bench.methods.botorch_search import (
    CHUNK,
    CHUNK_OF_MANY,
    best_candidate,
    candidates,
    optima,
    seeded,
)
from amortes.bench.methods.model_based import ModelBased
from amortes.bench.protocol import Problem

SAMPLES = 64


class MapGP(ModelBased[SingleTaskGP]):
    """One run with the acquisition logei, lognei, gibbon or jes."""

    def __init__(self, problem: Problem, seed: int, acquisition: str) -> None:
        super().__init__(problem, seed)
        self.acquisition = acquisition

    def fit(self, X: Tensor, y: Tensor, seed: int) -> SingleTaskGP:
        """Maximise the marginal likelihood times the priors."""
        return fit_map(X, y, seed)

    def search(self, model: SingleTaskGP, X: Tensor, seed: int) -> Tensor:
        """Maximise the acquisition by BoTorch's search."""
        with seeded(seed):
            acquisition = self._acquisition(model, X)
            # JES conditions a process on each of its optima.
            chunk = CHUNK_OF_MANY if self.acquisition == "jes" else CHUNK
            return best_candidate(acquisition, self.d, self.pool, X, chunk)

    def mean(self, model: SingleTaskGP) -> Score:
        """The posterior mean of standardised y."""
        return posterior_mean(model)

    def _acquisition(self, model: SingleTaskGP, X: Tensor) -> AcquisitionFunction:
        if self.acquisition == "logei":
            return LogExpectedImprovement(model, evaluate(posterior_mean(model), X).max())
        if self.acquisition == "lognei":
            return qLogNoisyExpectedImprovement(model, X_baseline=X, prune_baseline=True)
        if self.acquisition == "gibbon":
            points = candidates(self.d, self.pool)
            return qLowerBoundMaxValueEntropy(model, points, num_mv_samples=SAMPLES)
        return qJointEntropySearch(model, *optima(model, self.d, self.pool, SAMPLES))


def careful(problem: Problem, seed: int) -> MapGP:
    """What a careful user of BoTorch takes: an acquisition for noise if there is any."""
    return MapGP(problem, seed, "lognei" if problem.noise_sd else "logei")


def fit_map(X: Tensor, y: Tensor, seed: int) -> SingleTaskGP:
    """The process fitted to X, `n x d`, and y, `n`, which is standardised."""
    with seeded(seed):
        z = Units.of(y, maximise=True).to_network(y)
        model = SingleTaskGP(X, z[:, None], outcome_transform=None)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        # Acquisition functions are climbed in x; no graph back to hyperparameters is of use.
        return model.requires_grad_(False)


def posterior_mean(model: SingleTaskGP) -> Score:
    """The posterior mean of standardised y, `m x d -> m`."""

    def mean(Xq: Tensor) -> Tensor:
        values: Tensor = model.posterior(Xq[:, None]).mean.flatten()
        return values

    return mean
