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

BoTorch's own acquisition functions are made for one process and do not stand an ensemble:

GIBBON  confuses samples of hyperparameters with fantasies: it fails, or, with as many maxima as
        hyperparameter samples, is silently wrong. `EnsembleGibbon` is its formula (Moss et al.,
        GIBBON, JMLR 2021, for one point) with a dimension for each.
JES     refuses `FullyBayesianSingleTaskGP`, but `qJointEntropySearch` is right for an ensemble that
        is none, like `PaperGP`, if it gets optima of each member: `s x k x d` and `s x k x 1`.
PES     takes a list of optima, each used with every member. `EnsemblePES` shows it a process whose
        batches are the pairs of a member and an optimum drawn from that member (`Flattened`). Where
        expectation propagation fails for one pair or one point, BoTorch's safeguards act on the
        whole batch, and values depend on what else is in it, with one process as with many.

Shapes: b points, k members, s samples of the optimum per member. Needs the extra `bench`.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from botorch.acquisition import (
    AcquisitionFunction,
    ExpectedImprovement,
    LogExpectedImprovement,
)
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.acquisition.max_value_entropy_search import qLowerBoundMaxValueEntropy
from botorch.acquisition.predictive_entropy_search import qPredictiveEntropySearch
from botorch.models.gpytorch import BatchedMultiOutputGPyTorchModel
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch.distributions import MultivariateNormal
from linear_operator import to_linear_operator
from torch import Tensor

from amortes.acquisition import evaluate
from amortes.acquisition.units import Units
from amortes.bench.methods.map_gp import (
    PATH_RESTARTS,
    BoTorchMethod,
    candidates,
    optima,
    posterior_mean,
    seeded,
)
from amortes.bench.methods.paper_gp import PaperGP, fit, forget_now_and_then
from amortes.bench.protocol import Problem, Step

SMALL = 1e-8  # where BoTorch cuts variances and probabilities off
STEP = 1e-4  # half the distance over which a slope of PES is taken
MAXIMA, OPTIMA = 64, 4


class EnsembleGibbon(qLowerBoundMaxValueEntropy):  # type: ignore[misc]
    """GIBBON's bound on the information about the maximum, whose draws (per member) it inherits."""

    posterior_max_values: Tensor  # s x k

    @t_batch_mode_transform(expected_q=1)  # type: ignore[untyped-decorator]
    def forward(self, X: Tensor) -> Tensor:
        """The gain at X, `b x 1 x d`: `b`."""
        posterior = self.model.posterior(X)
        mean, variance = posterior.mean[..., 0], posterior.variance[..., 0].clamp_min(SMALL)
        noisy = variance + self.model.likelihood.noise  # b x k x 1, as are the others
        standard = (self.posterior_max_values.mT - mean) / variance.sqrt()  # b x k x s
        ratio = density(standard) / torch.special.ndtr(standard).clamp_min(SMALL)
        left = 1.0 - variance / noisy * ratio * (standard + ratio)
        gain: Tensor = -0.5 * left.clamp_min(SMALL).log()
        return gain.mean((-2, -1))


def density(x: Tensor) -> Tensor:
    """The standard normal density."""
    return (-0.5 * x.square()).exp() / math.sqrt(2.0 * math.pi)


class EnsemblePES(AcquisitionFunction):  # type: ignore[misc]
    """PES given optima of each member, `s x k x d`; its gradient is one of finite differences.

    BoTorch advises so: the automatic one can be NaN, for damping has no derivative.
    """

    def __init__(self, model: PaperGP, x_star: Tensor) -> None:
        super().__init__(model=model)
        self.pes = qPredictiveEntropySearch(Flattened(model, len(x_star)), x_star.flatten(0, 1))

    def forward(self, X: Tensor) -> Tensor:
        """The gain at X, `b x 1 x d`: `b`."""
        gain: Tensor
        if X.requires_grad and torch.is_grad_enabled():
            gain = _FiniteDifferences.apply(X, self.pes)  # type: ignore[no-untyped-call]
        else:
            gain = self.pes(X)
        return gain


class _FiniteDifferences(torch.autograd.Function):
    """A function of `b x 1 x d` whose gradient is central differences, all in one batch."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Values at X, and the slopes that `backward` will need."""
        steps = STEP * torch.eye(X.shape[-1], dtype=X.dtype)
        moved = torch.cat([X - steps, X + steps, X], dim=-2)  # b x (2 d + 1) x d
        values = function(moved.flatten(0, 1)[:, None]).reshape(moved.shape[:-1])
        behind, ahead, at = values.split_with_sizes([len(steps), len(steps), 1], dim=-1)
        ctx.save_for_backward((ahead - behind) / (2.0 * STEP))
        return at.squeeze(-1)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        """The gradient in X."""
        (slopes,) = ctx.saved_tensors
        return (upstream[0][:, None] * slopes)[:, None], None


class Flattened(Model):  # type: ignore[misc]
    """An ensemble as one process for batches of s k sets of points, number i k + j for member j."""

    def __init__(self, ensemble: PaperGP, samples: int) -> None:
        super().__init__()
        self.ensemble, self.samples = ensemble, samples
        self.train_inputs = ensemble.train_inputs

    @property
    def num_outputs(self) -> int:
        """One."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """Empty: to its user it is one process."""
        return torch.Size()

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
    ) -> GPyTorchPosterior:
        """The joint posterior at X, `... x (s k) x q x d`: batch shape `... x (s k)`."""
        k = self.ensemble.num_mcmc_samples
        members = X.reshape(*X.shape[:-3], self.samples, k, *X.shape[-2:])
        # Past the ensemble's own posterior(), which would give each set of points to each member.
        known: Any = BatchedMultiOutputGPyTorchModel.posterior(
            self.ensemble, members, observation_noise=observation_noise
        )
        mean = known.distribution.mean.flatten(-3, -2)
        covariance = known.distribution.covariance_matrix.flatten(-4, -3)
        # As an operator: of a plain matrix a Cholesky factor is taken at once, but in a pool the
        # optimum may be a training point, and so twice among X.
        return GPyTorchPosterior(MultivariateNormal(mean, to_linear_operator(covariance)))


class FullyBayesian(BoTorchMethod[PaperGP]):
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
        super().__init__(problem, seed, acquisition)
        self.path_restarts, self.sampler = path_restarts, sampler

    def step(self, X: Tensor, y: Tensor) -> Step:
        """As of all methods with a model; what JAX forgets afterwards is nobody's time."""
        step = super().step(X, y)
        forget_now_and_then()
        return step

    def fit(self, X: Tensor, y: Tensor, seed: int) -> PaperGP:
        """Sample hyperparameters by NUTS."""
        with seeded(seed):
            return self.sampler(X, Units.of(y, maximise=True).to_network(y), seed)

    def _acquisition(self, model: PaperGP, X: Tensor) -> AcquisitionFunction:
        if self.acquisition in ("ei", "logei"):
            kind = LogExpectedImprovement if self.acquisition == "logei" else ExpectedImprovement
            return kind(model, evaluate(posterior_mean(model), X).max())
        if self.acquisition == "mes":
            points = candidates(self.d, self.pool)
            return EnsembleGibbon(model, points, num_mv_samples=MAXIMA)
        x_star, f_star = optima(model, self.d, self.pool, OPTIMA, self.path_restarts)
        if self.acquisition == "jes":
            return qJointEntropySearch(model, x_star, f_star)
        return EnsemblePES(model, x_star)
