"""Exact Gaussian-process conditioning under each hyperparameter particle.

The constant mean is part of the kernel, k'(x, x') = k(x, x') + t^2 with prior mean m0, so its
uncertainty is in every variance. With W = L^-1, L the Cholesky factor of the observations'
covariance,

    m(x) = m0 + k_x' a,    cov(x, x') = k'(x, x') - (W k_x)' (W k_x'),

which turns every later question into matrix products. With more points only a few rows are new:
with C = W k_x and L the factor of cov(x, x') + s^2 I at these,

    W <- [W 0; -L^-1 C' W  L^-1].

Points that are being evaluated enter W but not a: variances shrink exactly as they will, means
stay. So particles that disagree about a pending value go on to do so, though it will settle that;
`kriging_believer` tells them all the same.

Points are scaled first, warped and divided by lengthscales as each particle has it; derivatives are
those by scaled coordinates. An interior maximum has a zero gradient and a negative curvature in
these as well.

Shapes: b datasets, k particles, n observations (with pending ones), q queries, d dimensions.
"""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from amortes import linalg
from amortes.nets.kernel import numpy_kernels
from amortes.nets.kernel.hyperparameters.hyper_posterior import observed_covariance
from amortes.nets.kernel.hyperparameters.particles import Particles, thin
from amortes.nets.kernel.numpy_kernels import QUIET, Scaling
from amortes.prior.gp import GPPrior
from amortes.prior.kernels import correlation, scaled, square_distance

# Variance of f relative to its prior variance below which a point counts as known: what rounding
# makes of it. It must be below the noise of smooth data without any, which is found to be 5e-10.
VARIANCE_FLOOR = 1e-11
# Particles that are enough for a first impression, as most of the weight is on a few; fewer of
# large datasets: no more than this many points in all.
ROUGHLY, ROUGH_POINTS = 4, 800
# Lengths below this are this: nothing is that short where anything can be learned.
SHORTEST = 0.02


@dataclass(frozen=True)
class Moments:
    """Posterior of f at q points under each particle."""

    mean: Tensor  # b x k x q
    variance: Tensor  # b x k x q
    whitened: Tensor  # b x k x n x q, W k_x: covariances follow by matrix products
    V: Tensor  # b x k x q x d, the points, scaled

    @property
    def sd(self) -> Tensor:
        """Posterior standard deviation of f."""
        return self.variance.sqrt()


@dataclass(frozen=True)
class Conditioned:
    """Everything that is computed once per dataset."""

    prior: GPPrior
    particles: Particles
    X: Tensor  # b x n x d, observed and pending points
    V: Tensor  # b x k x n x d, the same, scaled
    num_observed: int
    y: Tensor  # b x num_observed
    coefficients: Tensor  # b x k x n, the vector a; zero for pending points
    whitener: Tensor  # b x k x n x n, the matrix W

    def moments(self, Xq: Tensor) -> Moments:
        """Posterior moments of f at Xq, `b x q x d`."""
        return self.moments_at(self.scale(Xq))

    def moments_at(self, V: Tensor) -> Moments:
        """The same at scaled points, `b x k x q x d`, which may differ between particles."""
        return self.moments_given(self.kernel(self.V, V), V)

    def moments_given(self, k_x: Tensor, V: Tensor) -> Moments:
        """The same, from prior covariances with the observations: `b x k x n x q`."""
        if torch.is_grad_enabled() and k_x.requires_grad:
            whitened = self.whitener @ k_x
        else:
            whitened = torch.from_numpy(linalg.lower_times(self.whitener.numpy(), k_x.numpy()))
        mean = self._mean(k_x)
        total = self.prior_variance[..., None]
        variance = total - whitened.square().sum(-2)
        return Moments(mean, variance.clamp_min(VARIANCE_FLOOR * total.detach()), whitened, V)

    def mean(self, Xq: Tensor) -> Tensor:
        """Posterior mean of f at Xq, `b x q x d`: `b x k x q`; a third of the work of `moments`."""
        return self._mean(self.kernel(self.V, self.scale(Xq)))

    def _mean(self, k_x: Tensor) -> Tensor:
        return self.prior.mean.loc + (self.coefficients[..., None, :] @ k_x).squeeze(-2)

    @property
    def observed_mean(self) -> Tensor:
        """Posterior mean of f at the points observed: `b x k x num_observed`.

        It is y - s^2 a, because (K + s^2 I) a is the residual.
        """
        a = self.coefficients[..., : self.num_observed]
        return self.y[:, None] - self.noise_variance[..., None] * a

    def rough_moments(self, Xq: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and sd of f at Xq, `b x q x d`, by a few particles together: `b x q` each.

        Without gradients, in NumPy: see `numpy_kernels`.
        """
        few = self.roughly()
        K = few.kernel(few.V, few.scale(Xq.detach())).numpy()  # b x k x n x q
        mean = self.prior.mean.loc + (few.coefficients.numpy()[..., None, :] @ K)[..., 0, :]
        explained = np.square(linalg.lower_times(few.whitener.numpy(), K)).sum(-2)
        square = few.prior_variance.numpy()[..., None] - explained + np.square(mean)
        weights = few.weights.numpy()[..., None]
        average = (weights * mean).sum(1)
        variance = (weights * square).sum(1) - np.square(average)
        return torch.from_numpy(average), torch.from_numpy(np.sqrt(np.maximum(variance, 1e-12)))

    def covariance(self, at_q: Moments, at_r: Moments) -> Tensor:
        """Posterior covariance of f between q and r points: `b x k x q x r`."""
        return self.kernel(at_q.V, at_r.V) - at_q.whitened.mT @ at_r.whitened

    def scale(self, X: Tensor) -> Tensor:
        """Scaled coordinates of X, `b x n x d`, under each particle: `b x k x n x d`."""
        if not (torch.is_grad_enabled() and X.requires_grad):
            return torch.from_numpy(Scaling(self.particles.hyper).values(X.detach().numpy()))
        return scaled(self.particles.hyper, X[:, None])

    def kernel(self, V1: Tensor, V2: Tensor) -> Tensor:
        """Prior covariance of f, with the mean's, of scaled points: `b x k x n1 x n2`."""
        if not (torch.is_grad_enabled() and (V1.requires_grad or V2.requires_grad)):
            return self._known_kernel(V1, V2)
        r2 = square_distance(V1, V2)
        signal = self.signal * correlation(self.prior.kernel, r2, self.roughness)
        return signal + self.prior.mean.scale**2

    @QUIET
    def _known_kernel(self, V1: Tensor, V2: Tensor) -> Tensor:
        """The same in NumPy, without gradients."""
        rough = 0.0 if self.roughness is None else self.roughness.numpy()
        r2 = numpy_kernels.square_distance(V1.numpy(), V2.numpy())
        K = numpy_kernels.correlation(self.prior.kernel, r2, rough)
        K *= self.signal.numpy()
        K += self.prior.mean.scale**2
        return torch.from_numpy(K)

    @property
    def signal(self) -> Tensor:
        """Output variance: `b x k x 1 x 1`."""
        return self.particles.hyper.output_variance[..., None, None]

    @property
    def roughness(self) -> Tensor | None:
        """That of a mixed kernel: `b x k x 1 x 1`."""
        rough = self.particles.hyper.roughness
        return None if rough is None else rough[..., None, None]

    def thinned(self, count: int) -> "Conditioned":
        """The same with at most `count` particles that stand for all."""
        if self.particles.log_weights.shape[1] <= count:
            return self
        return self.take(*thin(self.particles.log_weights, count))

    def roughly(self) -> "Conditioned":
        """The same with particles that are enough for a first impression."""
        return self.thinned(min(ROUGHLY, max(2, ROUGH_POINTS // self.X.shape[1])))

    def dataset(self, i: int) -> "Conditioned":
        """One dataset of the batch, as a batch of one."""
        one, particles = slice(i, i + 1), self.particles
        of_one = Particles(
            particles.hyper[one], particles.log_weights[one], particles.log_evidence[one]
        )
        tensors = ("X", "V", "y", "coefficients", "whitener")
        parts = {name: getattr(self, name)[one] for name in tensors}
        return dataclasses.replace(self, particles=of_one, **parts)

    def take(self, index: Tensor, log_weights: Tensor) -> "Conditioned":
        """The same with particles `index`, `b x count`, and these weights."""
        rows = torch.arange(len(index))[:, None]
        return dataclasses.replace(
            self,
            particles=dataclasses.replace(
                self.particles, hyper=self.particles.hyper[rows, index], log_weights=log_weights
            ),
            V=self.V[rows, index],
            coefficients=self.coefficients[rows, index],
            whitener=self.whitener[rows, index],
        )

    def with_pending(self, X: Tensor) -> "Conditioned":
        """The same results with other pending points, X `b x p x d`."""
        known = self._without_pending()
        if X.shape[1] == 0:
            return known
        whitener, V, _ = known._appended(X)
        coefficients = torch.nn.functional.pad(known.coefficients, (0, X.shape[1]))
        everything = torch.cat([known.X, X], dim=1)
        return dataclasses.replace(
            known, X=everything, V=V, whitener=whitener, coefficients=coefficients
        )

    def with_results(self, X: Tensor, y: Tensor) -> tuple["Conditioned", Tensor]:
        """The same with more results, X `b x m x d` and y `b x m`, instead of pending points.

        Particles are weighed by what they foresaw, p(y | data, θ). Also returns how far they were
        off, `b`: the mean of the squares of independent residuals, one on average if all is right.
        """
        known, m = self._without_pending(), X.shape[1]
        whitener, V, at_x = known._appended(X)
        n, new = known.num_observed, whitener[..., known.num_observed :, known.num_observed :]
        off = new @ (y[:, None] - at_x.mean)[..., None]  # b x k x m x 1
        squares = off.square().sum((-1, -2))
        log_density = new.diagonal(dim1=-2, dim2=-1).log().sum(-1) - 0.5 * squares
        log_weights = self.particles.log_weights + log_density
        log_evidence = log_weights.logsumexp(-1) - 0.5 * m * math.log(2.0 * math.pi)
        particles = dataclasses.replace(
            self.particles,
            log_weights=log_weights.log_softmax(-1),
            log_evidence=self.particles.log_evidence + log_evidence,
        )
        change = whitener[..., n:, :].mT @ off  # of the vector a
        coefficients = torch.nn.functional.pad(known.coefficients, (0, m)) + change.squeeze(-1)
        told = dataclasses.replace(
            known,
            particles=particles,
            X=torch.cat([known.X, X], dim=1),
            V=V,
            num_observed=n + m,
            y=torch.cat([known.y, y], dim=1),
            coefficients=coefficients,
            whitener=whitener,
        )
        return told, (told.weights * squares).sum(-1) / m

    def _appended(self, X: Tensor) -> tuple[Tensor, Tensor, Moments]:
        """W and the scaled points with m more points, and the moments at these.

        `b x k x (n + m) x (n + m)`, `b x k x (n + m) x d`.
        """
        at_x = self.moments(X)
        C = at_x.whitened  # b x k x n x m
        covariance = self.kernel(at_x.V, at_x.V) - C.mT @ C
        covariance.diagonal(dim1=-2, dim2=-1).add_(self.noise_variance[..., None])
        V = torch.cat([self.V, at_x.V], dim=-2)
        # What rounding makes indefinite, of smooth functions without noise, has the size of this.
        L = linalg.cholesky(covariance, scale=self.prior_variance)
        inverse, (n, m) = linalg.inverse_triangular(L), C.shape[-2:]
        whitener = C.new_zeros(*C.shape[:2], n + m, n + m)
        whitener[..., :n, :n], whitener[..., n:, n:] = self.whitener, inverse
        whitener[..., n:, :n] = -inverse @ (C.mT @ self.whitener)
        return whitener, V, at_x

    def _without_pending(self) -> "Conditioned":
        """The same results alone."""
        n = self.num_observed
        if self.X.shape[1] == n:
            return self
        return dataclasses.replace(
            self,
            X=self.X[:, :n].contiguous(),
            V=self.V[..., :n, :].contiguous(),
            coefficients=self.coefficients[..., :n].contiguous(),
            # The leading block of a Cholesky factor, and of its inverse, belongs to these points.
            whitener=self.whitener[..., :n, :n].contiguous(),
        )

    def kriging_believer(self) -> "Conditioned":
        """The same, had each pending point given just what is expected of it, on average."""
        n = self.num_observed
        if self.X.shape[1] == n:
            return self
        expected = (self.weights[..., None] * self.mean(self.X[:, n:])).sum(1)
        y = torch.cat([self.y, expected], dim=1) - self.prior.mean.loc
        coefficients = self.whitener.mT @ (self.whitener @ y[:, None, :, None])
        return dataclasses.replace(self, coefficients=coefficients.squeeze(-1))

    @property
    def weights(self) -> Tensor:
        """Those of particles: `b x k`."""
        return self.particles.log_weights.exp()

    @property
    def typical_lengthscale(self) -> Tensor:
        """Geometric mean over particles, from `SHORTEST` to the width of the cube: `b x d`."""
        log_lengthscale = self.particles.hyper.lengthscale.log()
        return (self.weights[..., None] * log_lengthscale).sum(1).exp().clamp(SHORTEST, 1.0)

    @property
    def prior_variance(self) -> Tensor:
        """Variance of f before any data, with the mean's: `b x k`."""
        return self.particles.hyper.output_variance + self.prior.mean.scale**2

    @property
    def noise_variance(self) -> Tensor:
        """Variance of an observation about f: `b x k`."""
        return self.particles.hyper.noise_sd.square()


def condition(
    prior: GPPrior, particles: Particles, X: Tensor, y: Tensor, root: Tensor | None = None
) -> Conditioned:
    """Factorise once per particle: X `b x n x d`, y `b x n`, float64.

    `root`, `b x k x n x n`, are the Cholesky factors, if somebody knows them.
    """
    if root is None:
        root = linalg.cholesky(observed_covariance(prior, particles.hyper, X[:, None]))
    whitener = linalg.inverse_triangular(root)
    residual = (y - prior.mean.loc)[:, None, :, None]
    coefficients = (whitener.mT @ (whitener @ residual)).squeeze(-1)
    V = torch.from_numpy(Scaling(particles.hyper).values(X.numpy()))
    return Conditioned(prior, particles, X, V, X.shape[1], y, coefficients, whitener)
