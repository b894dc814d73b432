"""The kernel network: exact where a Gaussian process is, learned where it is not.

particles     hyperparameter posterior          no parameters
conditioning  exact posterior per particle      no parameters
landmarks     candidate optima, draws of the maximum, textbook gains
peak          the posterior given that the maximum is at x*
hints         closed-form conditioning on x*, f* or both
correction    learned: what the closed form gets wrong      (base stage)
gain          learned: the gains                            (alpha stage)
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from amortes.errors import ConfigError
from amortes.nets.base import Hint, Network
from amortes.nets.distributions import GaussianMixture, Predictive, Riemann, asinh_borders
from amortes.nets.kernel import gain as gains
from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.correction import Correction, correct, mixture
from amortes.nets.kernel.hints import start
from amortes.nets.kernel.landmarks import LandmarkConfig, Landmarks, find_landmarks, textbook_gains
from amortes.nets.kernel.particles import ParticleConfig, infer_particles
from amortes.prior.gp import GPPrior


@dataclass(frozen=True, kw_only=True)
class KernelConfig:
    """Sizes of the learned parts and effort of the computed ones."""

    particles: ParticleConfig = ParticleConfig()
    landmarks: LandmarkConfig = LandmarkConfig()
    correction_width: int = 96
    gain_width: int = 64
    gain_heads: int = 4
    gain_layers: int = 2
    gain_bars: int = 160

    def __post_init__(self) -> None:
        for field in ("correction_width", "gain_width", "gain_heads", "gain_layers"):
            if getattr(self, field) < 1:
                raise ConfigError(f"{field}: must be at least 1, not {getattr(self, field)}.")
        if self.gain_width % self.gain_heads:
            raise ConfigError(
                f"gain_width: must be a multiple of gain_heads={self.gain_heads}, "
                f"not {self.gain_width}."
            )


@dataclass
class KernelState:
    """A conditioned dataset; what only the gains need is computed when first asked for."""

    conditioned: Conditioned
    landmarks: Landmarks | None = None
    tokens: Tensor | None = None


class KernelNetwork(Network[KernelState]):
    """See the module's docstring."""

    gain_borders: Tensor

    def __init__(self, config: KernelConfig, prior: GPPrior) -> None:
        super().__init__()
        self._config, self.prior = config, prior
        self.correction = Correction(config.correction_width)
        self.gain_network = gains.GainNetwork(
            config.gain_width, config.gain_heads, config.gain_layers, config.gain_bars
        )
        # Of gains in their units, 98 % are within +-60 (docs/log.md, 2026-11-15).
        borders = asinh_borders(config.gain_bars, limit=300.0, linear=0.5)
        self.register_buffer("gain_borders", borders, persistent=False)
        self.use_correction = True

    @property
    def config(self) -> KernelConfig:
        """The configuration it was built from."""
        return self._config

    def condition(self, X: Tensor, y: Tensor, X_pending: Tensor | None = None) -> KernelState:
        """Infer hyperparameter particles and factorise; see `Network.condition`."""
        with torch.no_grad():
            X64, y64 = X.double(), y.double()
            particles = infer_particles(self.prior, X64, y64, self._config.particles)
            pending = None if X_pending is None else X_pending.double()
            return KernelState(condition(self.prior, particles, X64, y64, pending))

    def predict(self, state: KernelState, Xq: Tensor, hint: Hint | None = None) -> GaussianMixture:
        """Mixture of Gaussians over particles; see `Network.predict`."""
        return self._predict(state, Xq, hint, corrected=self.use_correction)

    def teach(self, state: KernelState, Xq: Tensor, hint: Hint | None = None) -> GaussianMixture:
        """The closed form, whose entropies rank queries better: docs/log.md, 2026-11-16.

        The correction hedges, which is good for likelihoods but hides small gains.
        """
        return self._predict(state, Xq, hint, corrected=False)

    def _predict(
        self, state: KernelState, Xq: Tensor, hint: Hint | None, *, corrected: bool
    ) -> GaussianMixture:
        conditioned = state.conditioned
        Xq64 = Xq.double()
        at_q = conditioned.moments(Xq64)
        log_weights = conditioned.particles.log_weights[..., None, None]
        if hint is None or (hint.x is None and hint.f is None):
            mean, sd = at_q.mean[..., None], at_q.sd[..., None]
            return mixture(conditioned, log_weights, mean, sd, Xq.dtype)
        landmarks = self._landmarks(state)
        begin = start(conditioned, Xq64, at_q, hint, landmarks)
        if not corrected:
            logits = log_weights + begin.log_evidence
            return mixture(conditioned, logits, begin.mean, begin.sd, Xq.dtype)
        parts = correct(self.correction, conditioned, at_q, begin, hint, landmarks)
        return mixture(conditioned, *parts, Xq.dtype)

    def gain(self, state: KernelState, Xq: Tensor) -> Predictive:
        """Gains in units of their textbook estimates; see `Network.gain`."""
        conditioned = state.conditioned
        landmarks = self._landmarks(state)
        Xq64 = Xq.double()
        at_q = conditioned.moments(Xq64)
        cross = conditioned.covariance(Xq64, at_q, landmarks.X, landmarks.moments)
        textbook = textbook_gains(conditioned, landmarks, at_q, cross)
        pairs = gains.edges(conditioned, at_q, landmarks.moments, cross)
        nearest = (pairs[..., 1] * landmarks.share[:, None].float()).sum(-1).to(textbook.dtype)
        inputs = gains.query_features(conditioned, Xq64, at_q, textbook, nearest)
        logits = self.gain_network(inputs, pairs, self._tokens(state))
        scale = gains.unit(conditioned, at_q, textbook)
        bars = Riemann(logits.to(Xq.dtype), self.gain_borders.to(Xq.dtype))
        return bars.affine(scale.to(Xq.dtype), torch.zeros((), dtype=Xq.dtype))

    def _landmarks(self, state: KernelState) -> Landmarks:
        if state.landmarks is None:
            with torch.no_grad():
                state.landmarks = find_landmarks(state.conditioned, self._config.landmarks)
        return state.landmarks

    def _tokens(self, state: KernelState) -> Tensor:
        if state.tokens is None or self.training:
            landmarks = self._landmarks(state)
            at_m = landmarks.moments
            pairs = gains.edges(state.conditioned, at_m, at_m, landmarks.covariance)
            inputs = gains.landmark_features(state.conditioned, landmarks)
            state.tokens = self.gain_network.tokens(inputs, pairs)
        return state.tokens

    def base_parameters(self) -> Iterator[nn.Parameter]:
        """The correction."""
        return self.correction.parameters()

    def alpha_parameters(self) -> Iterator[nn.Parameter]:
        """The gain network."""
        return self.gain_network.parameters()

    def start_alpha(self) -> None:
        """Nothing to prepare: the alpha network shares only computed parts with the base."""
