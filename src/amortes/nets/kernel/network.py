"""The kernel network: exact where a Gaussian process is, learned where it is not.

particles     hyperparameter posterior, of which `hyper_posterior` has the density
conditioning  exact posterior per particle
rivals        points that may be the maximum instead
peak          the posterior given that the maximum is at x*
known         the same at queries
landmarks     candidate optima, draws of the maximum among them
hints         closed-form conditioning on x*, f* or both
correction    learned: what the closed form gets wrong      (base stage)
optima        a few draws of the optimum
sketch        what they would tell about a query
columns, below  how, for all of them at once
features      what the alpha network sees of that
gain          learned: the gains                            (alpha stage)
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from amortes.errors import DataError, require_least
from amortes.nets.base import GAINS, Hint, Network
from amortes.nets.distributions import GaussianMixture, Predictive, Riemann, asinh_borders
from amortes.nets.kernel import gain as gains
from amortes.nets.kernel.conditioning import Conditioned, condition
from amortes.nets.kernel.correction import Correction, correct, mixture
from amortes.nets.kernel.features import Describer
from amortes.nets.kernel.hints import start
from amortes.nets.kernel.landmarks import (
    LandmarkConfig,
    Landmarks,
    find_landmarks,
    fresh_optima,
)
from amortes.nets.kernel.particles import ParticleConfig, infer_with_roots
from amortes.nets.kernel.sketch import Sketch
from amortes.prior.gp import GPPrior

# Particles that stand for all of them where gains are concerned: docs/log.md, 2026-11-17.
GAIN_PARTICLES = 12


@dataclass(frozen=True, kw_only=True)
class KernelConfig:
    """Sizes of the learned parts and effort of the computed ones."""

    particles: ParticleConfig = ParticleConfig()
    landmarks: LandmarkConfig = LandmarkConfig()
    correction_width: int = 96
    gain_width: int = 64
    gain_layers: int = 2
    gain_bars: int = 160

    def __post_init__(self) -> None:
        require_least(self, correction_width=1, gain_width=1, gain_layers=1, gain_bars=3)


@dataclass
class KernelState:
    """A conditioned dataset; what only the gains need is computed when first asked for."""

    conditioned: Conditioned
    landmarks: Landmarks | None = None
    gains: tuple[Sketch, Describer] | None = None  # without the particles that hardly matter


class KernelNetwork(Network[KernelState]):
    """See the module's docstring."""

    gain_borders: Tensor
    inference_dtype = torch.float64
    cpu_only = True

    def __init__(self, config: KernelConfig, prior: GPPrior) -> None:
        super().__init__()
        self._config, self.prior = config, prior
        self.correction = Correction(config.correction_width)
        sizes = config.gain_width, config.gain_layers, config.gain_bars
        self.gain_networks = nn.ModuleDict({name: gains.GainNetwork(*sizes) for name in GAINS})
        # Of gains in their units, 98 % are within +-60 (docs/log.md, 2026-11-15).
        borders = asinh_borders(config.gain_bars, limit=300.0, linear=0.5)
        self.register_buffer("gain_borders", borders, persistent=False)
        self._bars = {
            dtype: _even_bars(borders.to(dtype)) for dtype in (torch.float32, torch.float64)
        }
        for network in self.gain_networks.values():
            assert isinstance(network, gains.GainNetwork)
            network.start_at(1.0, borders)
        # Whatever torch's default is; the borders stay as they are.
        self.correction.float()
        self.gain_networks.float()
        self.use_correction = True

    @property
    def config(self) -> KernelConfig:
        """The configuration it was built from."""
        return self._config

    def condition(self, X: Tensor, y: Tensor, X_pending: Tensor | None = None) -> KernelState:
        """Infer hyperparameter particles and factorise; see `Network.condition`."""
        if X.shape[1] == 0:
            raise DataError(f"X: needs an observation, but has shape {tuple(X.shape)}.")
        with _kept():
            X64, y64 = _double(X), _double(y)
            particles, root = infer_with_roots(self.prior, X64, y64, self._config.particles)
            pending = None if X_pending is None else _double(X_pending)
            return KernelState(condition(self.prior, particles, X64, y64, pending, root))

    def with_pending(self, state: KernelState, X_pending: Tensor | None) -> KernelState:
        """Keep the particles, which do not depend on pending points."""
        known = state.conditioned
        with _kept():
            X = known.X[:, : known.num_observed].contiguous()
            pending = None if X_pending is None else _double(X_pending)
            return KernelState(condition(self.prior, known.particles, X, known.y, pending))

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
        Xq64 = _queries(Xq)
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

    @torch.no_grad()
    def imagined_gains(self, state: KernelState, Xq: Tensor) -> Tensor:
        """Draws of the optimum that `gain` does not look at; see `Network.imagined_gains`."""
        self.require_draws()
        conditioned, landmarks = state.conditioned, self._landmarks(state)
        sketch = Sketch(conditioned, landmarks, fresh_optima(conditioned, landmarks))
        terms = [sketch.terms(name, Xq.double()).counted for name in GAINS]
        return torch.stack(terms, dim=-1).to(Xq.dtype)

    def require_draws(self) -> None:
        """See `Network.require_draws`."""
        self._config.landmarks.require_fresh()

    def gain(self, state: KernelState, Xq: Tensor, names: Sequence[str] = GAINS) -> Predictive:
        """Gains in units of the sketched ones; see `Network.gain`."""
        (sketch, describer), Xq64 = self._gains(state), _queries(Xq)
        units, logits = [], []
        for name in names:
            features = describer.describe(sketch.terms(name, Xq64))
            units.append(features.unit)
            logits.append(self.gain_networks[name](features.draws, features.queries))
        bars = self._bars[Xq.dtype].like(torch.stack(logits, 2).to(Xq.dtype))
        zero = torch.zeros((), dtype=Xq.dtype)
        return bars.affine(torch.stack(units, 2).to(Xq.dtype), zero)

    def _landmarks(self, state: KernelState) -> Landmarks:
        if state.landmarks is None:
            with _kept():
                state.landmarks = find_landmarks(state.conditioned, self._config.landmarks)
        return state.landmarks

    def _gains(self, state: KernelState) -> tuple[Sketch, Describer]:
        if state.gains is None:
            with _kept():
                # Else the optimum would tell which particle is right about a pending value.
                conditioned = state.conditioned.thinned(GAIN_PARTICLES).believing()
                landmarks = find_landmarks(conditioned, self._config.landmarks)
                sketch = Sketch(conditioned, landmarks, landmarks.optima)
                state.gains = sketch, Describer.of(sketch)
        return state.gains

    def base_parameters(self) -> Iterator[nn.Parameter]:
        """The correction."""
        return self.correction.parameters()

    def alpha_parameters(self) -> Iterator[nn.Parameter]:
        """The gain networks."""
        return self.gain_networks.parameters()

    def start_alpha(self) -> None:
        """Nothing to prepare: the alpha network shares only computed parts with the base."""


def _even_bars(borders: Tensor) -> Riemann:
    """Bars of which the centres are known."""
    bars = Riemann(torch.zeros_like(borders[1:]), borders)
    bars.centres  # noqa: B018 computed now, not in somebody's inference mode
    return bars


@contextlib.contextmanager
def _kept() -> Iterator[None]:
    """For what needs no gradients itself, but is kept for calls that do: not in inference mode."""
    with torch.inference_mode(False), torch.no_grad():
        yield


def _double(t: Tensor) -> Tensor:
    """A copy in float64: the caller may use the memory again.

    Made outside inference mode, for nothing can be differentiated through tensors made in it.
    """
    return t.to(torch.float64, copy=True, memory_format=torch.contiguous_format)


def _queries(Xq: Tensor) -> Tensor:
    if Xq.shape[1] == 0:
        raise DataError(f"Xq: needs a query, but has shape {tuple(Xq.shape)}.")
    return Xq.double()
