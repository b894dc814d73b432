"""Conditioning on the optimum by the book: one dataset, one particle, one x*.

A squared exponential kernel in plain formulas, derivatives by autograd in the coordinates of the
cube, the joint Gaussian of everything, written out. What `optimum` computes fast.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import jacfwd

from amortes.nets.kernel.conditioning import Conditioned
from amortes.nets.kernel.optimum.given_optimum import LOGISTIC, TIE
from amortes.nets.kernel.optimum.local_maximum import GRADIENT_SLACK
from amortes.prior.warp import warp

Function = Callable[[Tensor], Tensor]
NORMAL = torch.distributions.Normal(0.0, 1.0)


class Posterior:
    """Mean and covariance of f given the data of one dataset, under one particle."""

    def __init__(self, conditioned: Conditioned, dataset: int = 0, particle: int = 0) -> None:
        assert conditioned.prior.kernel == "se"
        self.hyper = conditioned.particles.hyper[dataset, particle]
        self.prior = conditioned.prior.mean
        self.X, y = conditioned.X[dataset], conditioned.y[dataset]
        noise = self.hyper.noise_sd.square() * torch.eye(len(y), dtype=y.dtype)
        self.precision: Tensor = torch.linalg.inv(self.kernel(self.X, self.X) + noise)
        self.a = self.precision @ (y - self.prior.loc)

    def kernel(self, A: Tensor, B: Tensor) -> Tensor:
        """Prior covariance between points `n x d` and `m x d`, with that of the constant mean."""
        if self.hyper.warp is not None:
            A, B = (warp(t, self.hyper.warp) for t in (A, B))
        square = ((A[:, None] - B) / self.hyper.lengthscale).square().sum(-1)
        covariance: Tensor = self.hyper.output_variance * (-0.5 * square).exp()
        return covariance + self.prior.scale**2

    def mean(self, A: Tensor) -> Tensor:
        """Of f at points `n x d`."""
        rise: Tensor = self.kernel(A, self.X) @ self.a
        return self.prior.loc + rise

    def covariance(self, A: Tensor, B: Tensor) -> Tensor:
        """Of f at points `n x d` and `m x d`."""
        explained: Tensor = self.kernel(A, self.X) @ self.precision @ self.kernel(self.X, B)
        return self.kernel(A, B) - explained

    def joint(self, x: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and covariance of f(x), its gradient and Hessian (all entries), and f(points)."""
        own = jet(lambda u: jet(lambda v: self.covariance(u[None], v[None])[0, 0], x), x)
        cross = jet(lambda u: self.covariance(u[None], points)[0], x)
        cov = torch.cat(
            [
                torch.cat([own, cross], dim=1),
                torch.cat([cross.T, self.covariance(points, points)], dim=1),
            ]
        )
        return torch.cat([jet(lambda u: self.mean(u[None])[0], x), self.mean(points)]), cov


def jet(h: Function, x: Tensor) -> Tensor:
    """h, its gradient and its Hessian at x, in front of the axes of h: `(1 + d + d^2) x ...`."""
    value = h(x)
    slopes = jacfwd(h)(x).movedim(-1, 0)
    bends = jacfwd(jacfwd(h))(x).movedim((-2, -1), (0, 1)).flatten(0, 1)
    return torch.cat([value[None], slopes, bends])


def given(
    mean: Tensor, cov: Tensor, known: list[int], value: Tensor, noise: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and covariance given the entries `known`, perhaps with noise of these variances."""
    own = cov[known][:, known]
    gain = torch.linalg.solve(own if noise is None else own + noise.diag(), cov[known]).T
    return mean + gain @ (value - mean[known]), cov - gain @ cov[known]


def truncated(mean: Tensor, cov: Tensor, a: Tensor, shift: float = 0.0) -> tuple[Tensor, Tensor]:
    """Moments given a . values + shift >= 0, where this is not certain either way."""
    sd = (a @ cov @ a).sqrt()
    z = (a @ mean + shift) / sd
    hazard = (NORMAL.log_prob(z) - torch.special.log_ndtr(z)).exp()  # type: ignore[no-untyped-call]
    row = cov @ a / sd
    return mean + row * hazard, cov - torch.outer(row, row) * hazard * (hazard + z)


def given_optimum(
    posterior: Posterior, x: Tensor, f: Tensor | None, points: Tensor, Xq: Tensor, rounds: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and variance at queries Xq, and the log evidence, in one or two dimensions.

    Zero slopes where x is inside the cube, f(x) = f if that is known, f(x) >= f at `rounds` of the
    points, worst first, and f(x) >= f(query).
    """
    d, m = len(x), len(points)
    mean, cov = posterior.joint(x, torch.cat([points, Xq]))
    slopes = [1 + i for i in range(d) if 0.0 < x[i] < 1.0]
    prior = jet(lambda u: jet(lambda v: posterior.kernel(u[None], v[None])[0, 0], x), x)
    noise, zero = GRADIENT_SLACK * prior.diagonal()[slopes], torch.zeros(len(slopes)).to(x)
    own = cov[slopes][:, slopes] + noise.diag()
    normal = torch.distributions.MultivariateNormal(mean[slopes], own)
    evidence = normal.log_prob(zero)  # type: ignore[no-untyped-call]
    mean, cov = given(mean, cov, slopes, zero, noise)
    if f is not None:
        value = torch.distributions.Normal(mean[0], cov[0, 0].sqrt())
        evidence = evidence + value.log_prob(f)  # type: ignore[no-untyped-call]
        mean, cov = given(mean, cov, [0], f[None])
    for i in slopes:  # independent second derivatives, each negative: E[max(-h, 0)]
        bend = d + 1 + (i - 1) * (d + 1)
        sd = cov[bend, bend].sqrt()
        z = -mean[bend] / sd
        density = NORMAL.log_prob(z).exp()  # type: ignore[no-untyped-call]
        evidence = evidence + (sd * (density + z * torch.special.ndtr(z))).log()
    first = 1 + d + d * d
    tie = TIE * float((posterior.hyper.output_variance + posterior.prior.scale**2).sqrt())
    left = list(range(first, first + m))
    unit = torch.eye(len(mean), dtype=mean.dtype)
    for _ in range(rounds):
        gaps = unit[0] - unit[left]
        sd = ((gaps @ cov) * gaps).sum(-1).sqrt()
        z = (gaps @ mean + tie) / sd
        worst = int((sd * torch.nn.functional.softplus(-LOGISTIC * z)).argmax())
        evidence = evidence + torch.special.log_ndtr(z[worst])
        mean, cov = truncated(mean, cov, gaps[worst], tie)
        left.pop(worst)
    ends = [
        truncated(mean[[0, j]], cov[[0, j]][:, [0, j]], torch.tensor([1.0, -1.0]).to(mean))
        for j in range(first + m, len(mean))
    ]
    return torch.stack([e[0][1] for e in ends]), torch.stack([e[1][1, 1] for e in ends]), evidence


def density_of_maximum(posterior: Posterior, x: Tensor) -> Tensor:
    """Density of a local maximum at x inside the cube, with the whole Hessian, by Monte Carlo."""
    d = len(x)
    mean, cov = posterior.joint(x, x[None])
    slopes = list(range(1, d + 1))
    zero = torch.zeros(d).to(x)
    normal = torch.distributions.MultivariateNormal(mean[slopes], cov[slopes][:, slopes])
    density: Tensor = normal.log_prob(zero).exp()  # type: ignore[no-untyped-call]
    mean, cov = given(mean, cov, slopes, zero)
    upper = [d + 1 + i * d + j for i in range(d) for j in range(i, d)]
    root = torch.linalg.cholesky(cov[upper][:, upper])
    rng = torch.Generator().manual_seed(0)
    entries = mean[upper] + torch.randn(100_000, len(upper), generator=rng).to(x) @ root.T
    H = torch.zeros(len(entries), d, d).to(x)
    i, j = torch.triu_indices(d, d)
    H[:, i, j] = H[:, j, i] = entries
    curvatures = -torch.linalg.eigvalsh(H)
    sharpness: Tensor = (curvatures.prod(-1) * (curvatures > 0).all(-1)).mean()
    return density * sharpness
