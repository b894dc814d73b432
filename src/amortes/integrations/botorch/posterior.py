"""A network's predictive distribution as a BoTorch posterior.

Marginals are exact: mean, variance, quantiles and density are those of the distribution itself. A
joint sample at q points comes from a Gaussian copula: normals z with the posterior correlations of
the points (averaged over hyperparameters), then y_i = F_i^-1(Phi(z_i)). So each y_i has its own
marginal F_i, and a sample is a differentiable function of standard normals, which is what BoTorch's
samplers want.
"""

from typing import Any

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.posteriors.posterior import Posterior
from botorch.sampling.get_sampler import GetSampler
from botorch.sampling.normal import IIDNormalSampler, NormalMCSampler, SobolQMCNormalSampler
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes import linalg
from amortes.nets.distributions import Predictive
from amortes.nets.distributions.normal import ndtr


class PredictivePosterior(Posterior):  # type: ignore[misc]
    """Distributions at `b x q` points, with correlations `b x q x q` among the q, if known."""

    def __init__(self, mixture: Predictive, correlation: Tensor | None) -> None:
        self.mixture = mixture
        self.correlation = correlation

    @property
    def device(self) -> torch.device:
        """Where the distribution is."""
        return self.mixture.mean.device

    @property
    def dtype(self) -> torch.dtype:
        """Always float64 for distributions from a `Surrogate`."""
        return self.mixture.mean.dtype

    @property
    def mean(self) -> Tensor:
        """`b x q x 1`."""
        return self.mixture.mean[..., None]

    @property
    def variance(self) -> Tensor:
        """`b x q x 1`."""
        return self.mixture.variance[..., None]

    def quantile(self, value: Tensor) -> Tensor:
        """Quantiles of the marginals: `b x q x 1`, or `k x b x q x 1` for k levels."""
        return self.mixture.icdf(self._levels(value))[..., None]

    def density(self, value: Tensor) -> Tensor:
        """Density of the marginals: `b x q x 1`, or `k x b x q x 1` for k values."""
        return self.mixture.log_prob(self._levels(value)).exp()[..., None]

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        """Draws `sample_shape x b x q x 1` by torch's global generator, as in all of BoTorch."""
        shape = torch.Size() if sample_shape is None else sample_shape
        base = torch.randn(shape + self.base_sample_shape, dtype=self.dtype, device=self.device)
        return self.rsample_from_base_samples(shape, base)

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        """The same from given standard normals, `sample_shape x b x q`."""
        z = base_samples
        if z.shape != sample_shape + self.base_sample_shape:
            raise RuntimeError(
                f"base_samples must be {tuple(sample_shape + self.base_sample_shape)}, not "
                f"{tuple(z.shape)}."
            )
        if z.shape[-1] > 1:
            if self.correlation is None:
                raise UnsupportedError(
                    "this posterior has no correlations between points, because it is conditioned "
                    "on the optimum or its network is not a kernel network. It cannot be sampled "
                    "at q > 1 points jointly; pass `b x 1 x d` points."
                )
            z = (linalg.cholesky(self.correlation) @ z[..., None]).squeeze(-1)
        return self.mixture.icdf(ndtr(z))[..., None]

    @property
    def batch_shape(self) -> torch.Size:
        """The shape `b`."""
        return self.mixture.batch_shape[:-1]

    @property
    def base_sample_shape(self) -> torch.Size:
        """The shape `b x q` of the standard normals behind one sample."""
        return self.mixture.batch_shape

    @property
    def batch_range(self) -> tuple[int, int]:
        """Which of these dimensions are `b`."""
        return (0, -1)

    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return sample_shape + self.mixture.batch_shape + torch.Size([1])

    def _levels(self, value: Tensor) -> Tensor:
        """Values in front of the batch dimensions; a single one broadcasts."""
        if value.numel() == 1:
            return value.reshape(()).to(self.dtype)
        return value.to(self.dtype).reshape(-1, *[1] * len(self.mixture.batch_shape))


@GetSampler.register(PredictivePosterior)  # type: ignore[untyped-decorator]
def _sampler(
    posterior: PredictivePosterior, sample_shape: torch.Size, *, seed: int | None = None
) -> NormalMCSampler:
    dimensions = posterior.base_sample_shape[-1]
    largest: Any = SobolEngine.MAXDIM
    sampler = SobolQMCNormalSampler if dimensions <= largest else IIDNormalSampler
    return sampler(sample_shape=sample_shape, seed=seed)
