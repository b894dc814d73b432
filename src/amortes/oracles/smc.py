"""The fully Bayesian predictive, by annealed sequential Monte Carlo over hyperparameters.

Particles start as draws of the prior, z ~ N(0, I), and are led to the posterior through

    p_t(z)  proportional to  N(z; 0, I) p(y | X, z)^t,    0 = t_0 < t_1 < ... < 1.

Each step to a new temperature reweights the particles (t is raised until the effective sample size
falls to a given share), resamples a few of them, and starts from each a Markov chain *all* of whose
states become the new particles: waste-free SMC (Dau & Chopin, 2022, J. R. Stat. Soc. B 84), which
spends no likelihood evaluation on a state that is thrown away. At t = 1 longer chains give the
final sample.

The chains alternate two Metropolis moves built on the particles' mean and covariance: a random
walk, and a Crank-Nicolson step about the mean, which is an independent draw at step size 1. Step
sizes are random, so that nothing needs tuning. Coordinates without influence on the likelihood
(fixed hyperparameters) are left alone; the constant mean is integrated out and drawn at the end.

This is an oracle: exact up to Monte Carlo error, independent of the networks' own inference.
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from amortes import linalg
from amortes.errors import ConfigError
from amortes.nets.distributions import GaussianMixture
from amortes.oracles.marginal import MarginalGP
from amortes.prior.gp import GPPrior, Hyperparameters

BISECTIONS = 40
COVARIANCE_FLOOR = 1e-6


@dataclass(frozen=True, kw_only=True)
class SMCConfig:
    """Budget: `particles` likelihoods per temperature, then `final_particles`."""

    particles: int = 1024
    chain: int = 16  # states per chain at each temperature
    final_particles: int = 4096
    ess_share: float = 0.5

    def __post_init__(self) -> None:
        chains = self.particles // max(1, self.chain)
        if self.chain < 1 or chains < 1 or self.particles % self.chain:
            raise ConfigError(
                f"particles: must be a multiple of chain, not {self.particles} and {self.chain}."
            )
        if self.final_particles < chains or self.final_particles % chains:
            raise ConfigError(
                f"final_particles: must be a multiple of particles / chain = {chains}, "
                f"not {self.final_particles}."
            )
        if not 0.0 < self.ess_share < 1.0:
            raise ConfigError(f"ess_share: must be between 0 and 1, not {self.ess_share}.")


@dataclass(frozen=True)
class PosteriorDraws:
    """Equally weighted draws of the hyperparameters of b datasets, and what they predict."""

    gp: MarginalGP
    z: Tensor  # b x p x size, latent coordinates of the prior

    @property
    def hyper(self) -> Hyperparameters:
        """The draws as hyperparameters, batch shape `b x p`."""
        return self.gp.prior.hyperparameters(self.z, self.gp.d)

    def predict(self, Xq: Tensor) -> GaussianMixture:
        """Fully Bayesian predictive of y at Xq, `b x q x d`: batch shape `b x q`, p components."""
        mean, variance = self.gp.moments(self.z, Xq.double())
        sd = (variance + self.hyper.noise_sd.square()[..., None]).sqrt()
        return GaussianMixture(torch.zeros_like(mean).mT, mean.mT, sd.mT)

    def thinned(self, count: int) -> "PosteriorDraws":
        """At most `count` of the draws, from as many chains as possible."""
        p = self.z.shape[1]
        keep = torch.arange(min(count, p)) * p // min(count, p)
        return PosteriorDraws(self.gp, self.z[:, keep])


@torch.no_grad()
def hyper_posterior(
    prior: GPPrior, X: Tensor, y: Tensor, rng: torch.Generator, config: SMCConfig | None = None
) -> PosteriorDraws:
    """Draws from the hyperparameter posterior given X, `b x n x d`, and y, `b x n`.

    Of a prior that is a mixture (`GPPrior.models`): draws of each model in proportion to its
    probability times its evidence.
    """
    config = config or SMCConfig()
    if len(prior.models) == 1:
        return _sample(prior, X, y, rng, config)[0]
    found = [_sample(model, X, y, rng, config) for _, model in prior.models]
    shares = torch.tensor([share for share, _ in prior.models], dtype=torch.float64)
    odds = (torch.stack([evidence for _, evidence in found], -1) + shares.log()).softmax(-1)
    plain, warped = (posterior.z for posterior, _ in found)
    d, count = X.shape[-1], plain.shape[1]
    zero = torch.zeros(*plain.shape[:2], d, dtype=torch.float64)
    identity = [marginal.latent(zero, d) for marginal in (prior.warp_shape, prior.warp_shift)]
    plain = torch.cat([plain[..., : d + 3], *identity, plain[..., d + 3 :]], dim=-1)
    from_plain = torch.arange(count) < (odds[:, :1] * count).round()  # b x p
    # Chains are stored one after the other: a random order makes any part of them a fair sample.
    order = torch.rand(count, generator=rng).argsort()
    z = torch.where(from_plain[..., None], plain[:, order], warped[:, order])
    return PosteriorDraws(MarginalGP(prior, X, y), z[:, torch.rand(count, generator=rng).argsort()])


def _sample(
    prior: GPPrior, X: Tensor, y: Tensor, rng: torch.Generator, config: SMCConfig
) -> tuple[PosteriorDraws, Tensor]:
    """Draws from the posterior of one model, and its log evidence, `b`."""
    gp = MarginalGP(prior, X, y)
    size = prior.latent_size(gp.d)
    final = torch.randn(gp.b, config.final_particles, size, generator=rng, dtype=torch.float64)
    free = _free_coordinates(prior, gp.d)
    if len(free) == 0:
        return PosteriorDraws(gp, gp.with_mean(final, rng)), gp.log_likelihood(final[:, :1])[:, 0]
    z = torch.randn(gp.b, config.particles, size, generator=rng, dtype=torch.float64)
    log_likelihood = gp.log_likelihood(z)
    temperature = torch.zeros(gp.b, dtype=torch.float64)
    log_evidence = torch.zeros(gp.b, dtype=torch.float64)
    num_chains = config.particles // config.chain
    live = torch.arange(gp.b)  # datasets that have not arrived at temperature 1
    while len(live):
        raised = _next_temperature(log_likelihood[live], temperature[live], config)
        powers = (raised - temperature[live])[:, None] * log_likelihood[live]
        log_evidence[live] += powers.logsumexp(-1) - math.log(config.particles)
        weights = powers.softmax(-1)
        particles = z[live], log_likelihood[live], weights
        chains = _Chains.start(gp[live], free, raised, *particles, num_chains, rng)
        z[live], log_likelihood[live] = chains.run(config.chain, rng)
        temperature[live] = raised
        arrived = raised >= 1.0
        if arrived.any():
            # The chains that brought them there were the burn-in.
            ends = chains[arrived.nonzero()[:, 0]]
            final[live[arrived]] = ends.run(config.final_particles // num_chains, rng)[0]
        live = live[~arrived]
    return PosteriorDraws(gp, gp.with_mean(final, rng)), log_evidence


def _free_coordinates(prior: GPPrior, d: int) -> Tensor:
    """Latent coordinates that the likelihood depends on once the mean is integrated out."""
    free = [prior.lengthscale.scale > 0] * d
    free += [prior.output_variance.scale > 0, prior.noise_sd.scale > 0, False]  # last: the mean
    if prior.warped:
        free += [m.scale > 0 for m in (prior.warp_shape, prior.warp_shift) for _ in range(d)]
    if prior.kernel == "mixed":
        free.append(prior.rough_odds.scale > 0)
    return torch.tensor(free).nonzero()[:, 0]


def _next_temperature(log_likelihood: Tensor, current: Tensor, config: SMCConfig) -> Tensor:
    """The highest temperature, `b`, with enough effective particles."""
    target = config.ess_share * log_likelihood.shape[1]
    low, high = current, torch.ones_like(current)

    def enough(t: Tensor) -> Tensor:
        weights = ((t - current)[:, None] * log_likelihood).softmax(-1)
        return 1.0 / weights.square().sum(-1) >= target

    done = enough(high)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        ok = enough(middle)
        low, high = torch.where(ok, middle, low), torch.where(ok, high, middle)
    return torch.where(done, 1.0, low)


@dataclass
class _Chains:
    """Metropolis chains, c per dataset, with proposals shaped by the particles they came from."""

    gp: MarginalGP
    free: Tensor  # m, the coordinates that move
    temperature: Tensor  # b x 1
    centre: Tensor  # b x 1 x m, mean of the particles
    root: Tensor  # b x m x m, Cholesky factor of their covariance
    z: Tensor  # b x c x size, current states
    log_likelihood: Tensor  # b x c

    @classmethod
    def start(
        cls,
        gp: MarginalGP,
        free: Tensor,
        temperature: Tensor,
        z: Tensor,
        log_likelihood: Tensor,
        weights: Tensor,
        num_chains: int,
        rng: torch.Generator,
    ) -> Self:
        """Resample `num_chains` of the weighted particles z, `b x p x size`."""
        u = z[..., free]
        centre = (weights[..., None] * u).sum(1, keepdim=True)
        offset = u - centre
        covariance = (weights[..., None] * offset).mT @ offset
        root = linalg.cholesky(covariance + COVARIANCE_FLOOR * torch.eye(len(free)))
        # Systematic resampling.
        shift = torch.rand(len(z), 1, generator=rng, dtype=torch.float64)
        ticks = (shift + torch.arange(num_chains)) / num_chains
        parent = torch.searchsorted(weights.cumsum(-1), ticks).clamp_max(z.shape[1] - 1)
        chosen = z.gather(1, parent[..., None].expand(-1, -1, z.shape[-1]))
        values = log_likelihood.gather(1, parent)
        return cls(gp, free, temperature[:, None], centre, root, chosen, values)

    def __getitem__(self, index: Tensor) -> "_Chains":
        """The chains of some of the datasets."""
        batched = (self.temperature, self.centre, self.root, self.z, self.log_likelihood)
        return _Chains(self.gp[index], self.free, *(t[index] for t in batched))

    def run(self, steps: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """All states, chain after chain, `b x (c * steps) x size`, and log-likelihoods."""
        states, values = [], []
        for step in range(steps):
            self._move(rng, walk=step % 2 == 0)
            states.append(self.z)
            values.append(self.log_likelihood)
        return torch.stack(states, 2).flatten(1, 2), torch.stack(values, 2).flatten(1, 2)

    def _move(self, rng: torch.Generator, *, walk: bool) -> None:
        u = self.z[..., self.free]
        noise = torch.randn(u.shape, generator=rng, dtype=torch.float64) @ self.root.mT
        shrink = (-torch.rand(*u.shape[:2], 1, generator=rng, dtype=torch.float64)).exp()
        log_ratio = torch.zeros_like(self.log_likelihood)
        if walk:
            # 2.38 / sqrt(dimension) is optimal for a Gaussian (Roberts et al., 1997).
            size = 2.38 / math.sqrt(len(self.free)) * math.exp(0.5) * shrink
            proposal = u + size * noise
        else:
            size = shrink.sqrt()
            proposal = self.centre + (1.0 - size.square()).sqrt() * (u - self.centre) + size * noise
            log_ratio = self._log_gaussian(u) - self._log_gaussian(proposal)
        z = self.z.clone()
        z[..., self.free] = proposal
        log_likelihood = self.gp.log_likelihood(z)
        log_ratio += self.temperature * (log_likelihood - self.log_likelihood)
        log_ratio += 0.5 * (u.square() - proposal.square()).sum(-1)
        accept = torch.rand(log_ratio.shape, generator=rng, dtype=torch.float64).log() < log_ratio
        self.z = torch.where(accept[..., None], z, self.z)
        self.log_likelihood = torch.where(accept, log_likelihood, self.log_likelihood)

    def _log_gaussian(self, u: Tensor) -> Tensor:
        """Log density at u, `b x c x m`, of the Gaussian behind the proposals, less a constant."""
        offset = (u - self.centre).mT
        white: Tensor = torch.linalg.solve_triangular(self.root, offset, upper=False)
        return -0.5 * white.square().sum(-2)
