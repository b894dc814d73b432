"""Fully Bayesian Gaussian processes: the paper's own baseline, and its prior (`paper_gp`).

NUTS draws 16 hyperparameter settings; the acquisition is the average of those of 16 processes, the
posterior mean that of their mixture. y is standardised.

fb-ei     EI over the best mean of the mixture at an observed point (why: see `map_gp`)
fb-logei  the logarithm of that average: the same maximiser, but easier to climb
fb-mes    GIBBON with `MAXIMA` Gumbel samples of the maximum for each setting
fb-jes    JES with `OPTIMA` optima for each setting, 64 in all as for `map-jes`
fb-pes    PES by expectation propagation, with as many optima

BoTorch's PES counts observation noise as part of the function once a point is scored (its
`_compute_information_gain` asks for the noisy posterior twice), so it overrates noisy observations:
with noise of 10 standard deviations it saw a gain of 0.2 nats where 0.005 are possible. It is left
as a user would get it.

Needs the extra `bench`.
"""

from collections.abc import Callable

from botorch.acquisition import (
    AcquisitionFunction,
    ExpectedImprovement,
    LogExpectedImprovement,
)
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from torch import Tensor

from amortes.acquisition import Score, evaluate
from amortes.acquisition.units import Units
from amortes.bench.methods.botorch_search import (
    CHUNK_OF_MANY,
    PATH_RESTARTS,
    best_candidate,
    candidates,
    optima,
    seeded,
)
from amortes.bench.methods.ensemble_gains import EnsembleGibbon, EnsemblePES
from amortes.bench.methods.jax_setup import forget_now_and_then
from amortes.bench.methods.model_based import ModelBased
from amortes.bench.methods.paper_gp import PaperGP, fit
from amortes.bench.protocol import Problem, Step

MAXIMA, OPTIMA = 64, 4


class FullyBayesian(ModelBased[PaperGP]):
    """One run with the acquisition ei, logei, mes, jes or pes.

    Each function sampled for JES and PES is climbed from `path_restarts` starts; `sampler` draws
    the hyperparameters.
    """

    def __init__(
        self,
        problem: Problem,
        seed: int,
        acquisition: str,
        path_restarts: int = PATH_RESTARTS,
        sampler: Callable[[Tensor, Tensor, int], PaperGP] = fit,
    ) -> None:
        super().__init__(problem, seed)
        self.acquisition, self.path_restarts = acquisition, path_restarts
        self.sampler = sampler

    def step(self, X: Tensor, y: Tensor) -> Step:
        """As of all methods with a model; what JAX forgets afterwards is nobody's time."""
        step = super().step(X, y)
        forget_now_and_then()
        return step

    def fit(self, X: Tensor, y: Tensor, seed: int) -> PaperGP:
        """Sample hyperparameters by NUTS."""
        with seeded(seed):
            return self.sampler(X, Units.of(y, maximise=True).to_network(y), seed)

    def search(self, model: PaperGP, X: Tensor, seed: int) -> Tensor:
        """Maximise the acquisition by BoTorch's search."""
        with seeded(seed):
            acquisition = self._acquisition(model, X)
            return best_candidate(acquisition, self.d, self.pool, X, CHUNK_OF_MANY)

    def mean(self, model: PaperGP) -> Score:
        """The posterior mean of standardised y."""
        return mixture_mean(model)

    def _acquisition(self, model: PaperGP, X: Tensor) -> AcquisitionFunction:
        if self.acquisition in ("ei", "logei"):
            kind = LogExpectedImprovement if self.acquisition == "logei" else ExpectedImprovement
            return kind(model, evaluate(mixture_mean(model), X).max())
        if self.acquisition == "mes":
            points = candidates(self.d, self.pool)
            return EnsembleGibbon(model, points, num_mv_samples=MAXIMA)
        x_star, f_star = optima(model, self.d, self.pool, OPTIMA, self.path_restarts)
        if self.acquisition == "jes":
            return qJointEntropySearch(model, x_star, f_star)
        return EnsemblePES(model, x_star)


def mixture_mean(model: PaperGP) -> Score:
    """The posterior mean of standardised y over all hyperparameter samples, `m x d -> m`."""

    def mean(Xq: Tensor) -> Tensor:
        values: Tensor = model.posterior(Xq[:, None]).mixture_mean.flatten()
        return values

    return mean
