"""The kernel network: a fully Bayesian Gaussian process that answers in milliseconds.

hyperparameters  particles: an encoder that learned to propose them, exact inference
conditioning     exact posterior per particle
improvement      how much better a query may be than the best point
optimum          draws of the optimum, and the posterior given that it is there
gains            information gains, by a network that learned what such draws tell, or by draws
numpy_kernels    kernels and warps in NumPy, for the hot loops

Nothing depends on the number of observations or dimensions.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from amortes.errors import ConfigError, DataError
from amortes.nets.base import GAINS, Hint, Network
from amortes.nets.distributions import GaussianMixture
from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.gains.drawn_gains import DrawnGains, given_hint
from amortes.nets.kernel.gains.gain_network import GainConfig, GainNetwork
from amortes.nets.kernel.gains.learned_gains import LearnedGains
from amortes.nets.kernel.hyperparameters.encoder import (
    Encoder,
    EncoderConfig,
    inference_loss,
    propose,
)
from amortes.nets.kernel.hyperparameters.inference import infer
from amortes.nets.kernel.hyperparameters.large import MOST, telling, weighed_by_all
from amortes.nets.kernel.hyperparameters.particles import ParticleConfig
from amortes.nets.kernel.improvement import Improvement
from amortes.nets.kernel.numpy_kernels import Array
from amortes.nets.kernel.optimum.representers import RepresenterConfig
from amortes.nets.kernel.optimum.thompson_draws import ThompsonDraws, thompson_draws
from amortes.prior.gp import GPPrior, Hyperparameters

# Particles that stand for all of them where gains are concerned, and where draws of the optimum are
# conditioned on under each: docs/log.md, 2026-11-20. Of more than 20 points there are 16 anyway.
GAIN_PARTICLES, DRAWN_PARTICLES = 32, 16
# Sd of the Gaussian about each gain, relative to that: a distribution has a density.
GAIN_WIDTH = 0.05
# Points from which on the encoder is asked: with fewer, settings of the prior do as well, and its
# time is an eighth of all (docs/log.md, 2026-11-18).
WORTH_ASKING = 24
# Particles go on to serve for more results while at least this share of their effective number is
# left, and the results are off by no more than so many variances: docs/log.md, 2026-11-18.
STILL_EFFECTIVE, FORESEEN = 0.5, 4.0
# Numbers per temporary: 1 MB. With 45 points, eight times as many took 2.5 times as long.
CHUNK = 1 << 17


@dataclass(frozen=True, kw_only=True)
class KernelConfig:
    """Effort of what is computed."""

    particles: ParticleConfig = ParticleConfig()
    landmarks: RepresenterConfig = RepresenterConfig()  # the name in weights files
    encoder: EncoderConfig | None = EncoderConfig()  # none: climbs from fixed starts
    gains: GainConfig | None = None  # none: by draws of the optimum


@dataclass
class KernelState:
    """A conditioned dataset; what only the gains need is computed when first asked for."""

    conditioned: Conditioned
    modes: Array | None = None  # of hyperparameters: where those of more data are looked for
    few: Conditioned | None = None  # with particles that are enough for a first impression
    draws: ThompsonDraws | None = None
    gains: LearnedGains | DrawnGains | None = None  # without the particles that hardly matter
    incumbent: tuple[Tensor, Improvement] | None = None  # the last point improved upon


class KernelNetwork(Network[KernelState]):
    """See the module's docstring."""

    cpu_only = True
    has_evidence = True
    any_size = True
    needs_alpha = False

    def __init__(self, config: KernelConfig, prior: GPPrior) -> None:
        super().__init__()
        self._config, self.prior = config, prior
        self.encoder = None
        if config.encoder is not None:
            self.encoder = Encoder(config.encoder, len(prior.models)).float()
        self.gain_network = None if config.gains is None else GainNetwork(config.gains).float()

    @property
    def config(self) -> KernelConfig:
        """The configuration it was built from."""
        return self._config

    def condition(self, X: Tensor, y: Tensor, X_pending: Tensor | None = None) -> KernelState:
        """Infer hyperparameter particles and factorise; see `Network.condition`."""
        if X.shape[1] == 0:
            raise DataError(f"X: needs an observation, but has shape {tuple(X.shape)}.")
        return self._condition(X, y[:, None], torch.zeros_like(y[:, None]), X_pending)[0]

    def condition_likeliest(
        self, X: Tensor, Y: Tensor, bonus: Tensor, earlier: KernelState | None = None
    ) -> tuple[KernelState, Tensor]:
        """See `Network.condition_likeliest`; the encoder reads the first of the alternatives."""
        return self._condition(X, Y, bonus, None, earlier)

    def _condition(
        self,
        X: Tensor,
        Y: Tensor,
        bonus: Tensor,
        X_pending: Tensor | None,
        earlier: KernelState | None = None,
    ) -> tuple[KernelState, Tensor]:
        with _kept():
            X64, Y64 = _double(X), _double(Y)
            rows = torch.arange(len(X64))
            part, some_X, some_Y = None, X64, Y64
            if X64.shape[1] > MOST:
                part = telling(Y64[:, 0])
                some_X = X64[rows[:, None], part]
                some_Y, bonus = (t[rows[:, None], :, part].mT for t in (Y64, bonus))
            modes, guess = None if earlier is None else earlier.modes, None
            if modes is None and self.encoder is not None and some_X.shape[1] >= WORTH_ASKING:
                guess = propose(self.encoder, self.prior, some_X, some_Y[:, 0])
            bonus = bonus.double().sum(-1)
            particles, root, choice, modes = infer(
                self.prior, some_X, some_Y, bonus, self._config.particles, guess, modes
            )
            y64 = Y64[rows, choice]
            if part is not None:
                particles, root = weighed_by_all(self.prior, particles, root, part, X64, y64)
            conditioned = condition(self.prior, particles, X64, y64, root)
            if X_pending is not None:
                conditioned = conditioned.with_pending(_double(X_pending))
            return KernelState(conditioned, modes), choice

    def with_results(self, state: KernelState, X: Tensor, y: Tensor) -> KernelState | None:
        """See `Network.with_results`: by the same particles, weighed by what they foresaw."""
        with _kept():
            before = state.conditioned.particles
            conditioned, off = state.conditioned.with_results(_double(X), _double(y))
            after = conditioned.particles
            share = _effective(after.log_weights) / _effective(before.log_weights)
            # Written so that NaN fails.
            fine = bool(((share >= STILL_EFFECTIVE) & (off <= FORESEEN)).all())
            return KernelState(conditioned, state.modes) if fine else None

    def with_pending(self, state: KernelState, X_pending: Tensor | None) -> KernelState:
        """Keep the particles, which do not depend on pending points."""
        known = state.conditioned
        with _kept():
            pending = known.X[:, :0] if X_pending is None else _double(X_pending)
            return KernelState(known.with_pending(pending), state.modes)

    def predict(self, state: KernelState, Xq: Tensor, hint: Hint | None = None) -> GaussianMixture:
        """Mixture of Gaussians over particles; see `Network.predict`."""
        return self._mixture(state, Xq, hint, noise=True)

    def latent(self, state: KernelState, Xq: Tensor, hint: Hint | None = None) -> GaussianMixture:
        """The same without noise."""
        return self._mixture(state, Xq, hint, noise=False)

    def _mixture(
        self, state: KernelState, Xq: Tensor, hint: Hint | None, *, noise: bool
    ) -> GaussianMixture:
        conditioned = state.conditioned
        logits = conditioned.particles.log_weights[..., None, None]
        if hint is None or (hint.x is None and hint.f is None):
            at_q = conditioned.moments(_queries(Xq))
            mean, sd = at_q.mean[..., None], at_q.sd[..., None]
        else:
            draws = self._draws(state)
            mean, sd, log_evidence = given_hint(conditioned, _queries(Xq), hint, draws)
            logits = logits + log_evidence
        if noise:
            sd = (sd.square() + conditioned.noise_variance[..., None, None]).sqrt()

        def flat(t: Tensor) -> Tensor:  # b x k x q x J -> b x q x kJ
            return t.expand_as(mean).permute(0, 2, 1, 3).flatten(2).to(Xq.dtype)

        return GaussianMixture(flat(logits), flat(mean), flat(sd))

    def gain(self, state: KernelState, Xq: Tensor, names: Sequence[str] = GAINS) -> GaussianMixture:
        """See `Network.gain`: over draws of the optimum, or about what the gain network says."""
        found, Xq64 = self._gains(state), _queries(Xq)
        if isinstance(found, DrawnGains):
            each = [found.at(name, Xq64) for name in names]  # b x q x s
        else:
            each = [found.mean(name, Xq64)[..., None] for name in names]
        gains = torch.stack(each, dim=2).to(Xq.dtype)  # b x q x names x s
        width = GAIN_WIDTH * gains.detach().abs().mean(-1, keepdim=True) + 1e-12
        return GaussianMixture(torch.zeros_like(gains), gains, width.expand_as(gains))

    def expected_gain(self, state: KernelState, Xq: Tensor, name: str) -> Tensor:
        """The mean of `gain`, for one name: `b x q`."""
        return self._gains(state).mean(name, _queries(Xq)).to(Xq.dtype)

    def expected_gain_with_gradient(
        self, state: KernelState, Xq: Tensor, name: str
    ) -> tuple[Tensor, Tensor]:
        """See `Network.expected_gain_with_gradient`."""
        return self._gains(state).mean_with_gradient(name, _queries(Xq))

    def mean(self, state: KernelState, Xq: Tensor) -> Tensor:
        """Posterior mean at Xq, `b x q x d`: `b x q`; a third of the work of `predict`."""
        conditioned = state.conditioned
        return (conditioned.weights[..., None] * conditioned.mean(_queries(Xq))).sum(1)

    def observed_mean(self, state: KernelState) -> Tensor:
        """See `Network.observed_mean`."""
        conditioned = state.conditioned
        return (conditioned.weights[..., None] * conditioned.observed_mean).sum(1)

    def improvement(self, state: KernelState, Xq: Tensor, x: Tensor) -> GaussianMixture:
        """See `Network.improvement`."""
        mean, variance = self._over(state, x).moments(_queries(Xq))
        log_weights = state.conditioned.particles.log_weights[:, None]
        return GaussianMixture(log_weights, mean.mT, variance.sqrt().mT)

    def log_expected_improvement(self, state: KernelState, Xq: Tensor, x: Tensor) -> Tensor:
        """See `Network.log_expected_improvement`."""
        return self._over(state, x).log_expected(_queries(Xq))

    def log_expected_improvement_with_gradient(
        self, state: KernelState, Xq: Tensor, x: Tensor
    ) -> tuple[Tensor, Tensor]:
        """See `Network.log_expected_improvement_with_gradient`."""
        return self._over(state, x).log_expected_with_gradient(_queries(Xq))

    def _over(self, state: KernelState, x: Tensor) -> Improvement:
        if state.incumbent is None or not torch.equal(state.incumbent[0], x):
            with _kept():
                state.incumbent = x, Improvement(state.conditioned, x)
        return state.incumbent[1]

    def correlation(self, state: KernelState, Xq: Tensor, *, noise: bool) -> Tensor:
        """See `Network.correlation`; averaged over particles."""
        conditioned = state.conditioned
        at_q = conditioned.moments(Xq)
        covariance, variance = conditioned.covariance(at_q, at_q), at_q.variance
        if noise:
            variance = variance + conditioned.noise_variance[..., None]
        weights = conditioned.weights[..., None, None]
        scale = (variance[..., :, None] * variance[..., None, :]).sqrt()
        average = (weights * (covariance / scale).clamp(-1.0, 1.0)).sum(1)
        one = torch.eye(Xq.shape[-2], dtype=Xq.dtype)
        return average * (1.0 - one) + one

    @torch.no_grad()
    def rough_moments(self, state: KernelState, Xq: Tensor) -> tuple[Tensor, Tensor]:
        """By a few particles, in a tenth of the time of `latent`; see `Network.rough_moments`."""
        if state.few is None:
            state.few = state.conditioned.roughly()
        few = state.few
        size = max(1, CHUNK // few.coefficients.numel())
        parts = [few.rough_moments(part) for part in torch.split(Xq, size, dim=1)]
        mean, sd = (torch.cat(each, dim=1) for each in zip(*parts, strict=True))
        return mean, sd

    def lengthscale(self, state: KernelState) -> Tensor:
        """See `Network.lengthscale`."""
        return state.conditioned.typical_lengthscale

    def noise_sd(self, state: KernelState) -> Tensor:
        """See `Network.noise_sd`."""
        conditioned = state.conditioned
        return (conditioned.weights * conditioned.noise_variance).sum(1).sqrt()

    def log_evidence(self, state: KernelState) -> Tensor:
        """See `Network.log_evidence`."""
        return state.conditioned.particles.log_evidence

    def _draws(self, state: KernelState) -> ThompsonDraws:
        if state.draws is None:
            with _kept():
                state.draws = thompson_draws(state.conditioned, self._config.landmarks)
        return state.draws

    def _gains(self, state: KernelState) -> LearnedGains | DrawnGains:
        if state.gains is None:
            with _kept():
                # Else the optimum would tell which particle is right about a pending value.
                believed = state.conditioned.kriging_believer()
                if self.gain_network is None:
                    few = believed.thinned(DRAWN_PARTICLES)
                    state.gains = DrawnGains(few, thompson_draws(few, self._config.landmarks))
                else:
                    state.gains = LearnedGains(believed.thinned(GAIN_PARTICLES), self.gain_network)
        return state.gains

    def base_parameters(self) -> Iterator[nn.Parameter]:
        """Those of the encoder."""
        return iter(()) if self.encoder is None else self.encoder.parameters()

    def inference_loss(self, X: Tensor, y: Tensor, hyper: Hyperparameters) -> dict[str, Tensor]:
        """See `encoder`."""
        if self.encoder is None:
            raise ConfigError("config.encoder: there is nothing to train without one.")
        return inference_loss(self.encoder, self.prior, X, y, hyper)

    def alpha_parameters(self) -> Iterator[nn.Parameter]:
        """Those of the gain network."""
        return iter(()) if self.gain_network is None else self.gain_network.parameters()

    def start_alpha(self) -> None:
        """Nothing to prepare: `training.lessons` standardises what the gain network reads."""


@contextlib.contextmanager
def _kept() -> Iterator[None]:
    """For what needs no gradients itself, but is kept for calls that do: not in inference mode."""
    with torch.inference_mode(False), torch.no_grad():
        yield


def _effective(log_weights: Tensor) -> Tensor:
    """Effective number of particles, `b x k -> b`."""
    return log_weights.exp().square().sum(-1).reciprocal()


def _double(t: Tensor) -> Tensor:
    """A copy in float64: the caller may use the memory again.

    Made outside inference mode, for nothing can be differentiated through tensors made in it.
    """
    return t.to(torch.float64, copy=True, memory_format=torch.contiguous_format)


def _queries(Xq: Tensor) -> Tensor:
    if Xq.shape[1] == 0:
        raise DataError(f"Xq: needs a query, but has shape {tuple(Xq.shape)}.")
    return Xq.double()
