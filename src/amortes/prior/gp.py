"""The fully Bayesian Gaussian-process prior over functions on the unit cube.

A function is drawn in two steps: hyperparameters from independent (log-)normal marginals, then

    g ~ GP(mean, output_variance * k(u, u'; lengthscale)),
    f(x) = g(w(x)),    y = f(x) + noise_sd * e.

The warp w (`amortes.prior.warp`) of each coordinate is the identity in most priors. The kernel is
the squared exponential, Matern-5/2, or ("mixed") both with one lengthscale: a share
odds / (1 + odds) of the variance is Matern's.

Every hyperparameter is the image of a standard normal z: `loc + dim_power * log d + scale * z`,
exponentiated if `log`. A fixed value has scale 0. Inference over hyperparameters (the particles of
the kernel network) works on z, where the prior is N(0, I) whatever the named prior.

`real` is the prior of the default network; its numbers are chosen on traces of real optimisations
(`amortes evaluate prior`, docs/log.md, 2026-11-18). `paper` follows section 5 of Rakotoarison et
al. (ICML 2026), "α-PFN: Fast Entropy Search via In-Context Learning".
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from amortes.errors import ConfigError

Kernel = Literal["se", "matern52", "mixed"]
KERNELS: tuple[Kernel, ...] = ("se", "matern52", "mixed")
MAX_DIM = 64
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Marginal:
    """Prior of one positive (`log=True`) or real hyperparameter; `scale=0` fixes it."""

    loc: float
    scale: float
    log: bool
    dim_power: float = 0.0

    @classmethod
    def fixed(cls, value: float) -> Self:
        """A known value."""
        return cls(loc=value, scale=0.0, log=False)

    @classmethod
    def normal(cls, loc: float, scale: float) -> Self:
        """Normal(loc, scale)."""
        return cls(loc=loc, scale=scale, log=False)

    @classmethod
    def lognormal(cls, loc: float, scale: float, *, dim_power: float = 0.0) -> Self:
        """exp(Normal(loc + dim_power * log d, scale))."""
        return cls(loc=loc, scale=scale, log=True, dim_power=dim_power)

    def transform(self, z: Tensor, d: int) -> Tensor:
        """Map standard normal `z` (any shape) to the hyperparameter in dimension `d`."""
        value = self.loc + self.dim_power * math.log(d) + self.scale * z
        return value.exp() if self.log else value

    def latent(self, value: Tensor, d: int) -> Tensor:
        """The z of a value; 0 for a fixed one."""
        if self.scale == 0.0:
            return torch.zeros_like(value)
        real = value.log() if self.log else value
        return (real - self.loc - self.dim_power * math.log(d)) / self.scale

    def _check(self, field: str, *, positive: bool) -> None:
        if not all(map(math.isfinite, (self.loc, self.scale, self.dim_power))) or self.scale < 0:
            raise ConfigError(
                f"{field}: loc, scale and dim_power must be finite, scale >= 0: {self}."
            )
        if positive and not self.log and (self.scale > 0 or self.loc <= 0):
            raise ConfigError(
                f"{field}: must be positive, so lognormal or a fixed value > 0, not {self}."
            )
        if not positive and self.log:
            raise ConfigError(f"{field}: must be normal or fixed, not lognormal: {self}.")
        if self.dim_power and not self.log:
            raise ConfigError(f"{field}: only a lognormal one can have a dim_power, not {self}.")


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters of a batch of functions (any leading shape `...`)."""

    lengthscale: Tensor  # ... x d, of warped coordinates
    output_variance: Tensor  # ...
    noise_sd: Tensor  # ...
    mean: Tensor  # ...
    warp: Tensor | None = None  # ... x 2 x d, of `prior.warp`; None: coordinates as they are
    roughness: Tensor | None = None  # ..., share of Matern-5/2 in a mixed kernel

    @property
    def d(self) -> int:
        """Number of input dimensions."""
        return self.lengthscale.shape[-1]

    def to(self, dtype: torch.dtype) -> "Hyperparameters":
        """The same values in another floating-point type."""
        return self.map(lambda t: t.to(dtype))

    def __getitem__(self, index: Any) -> "Hyperparameters":
        return self.map(lambda t: t[index])

    def tensors(self) -> dict[str, Tensor]:
        """Those there are, by name."""
        return {name: t for name, t in vars(self).items() if t is not None}

    def map(self, function: Callable[[Tensor], Tensor]) -> "Hyperparameters":
        """The function of each tensor."""
        return Hyperparameters(**{name: function(t) for name, t in self.tensors().items()})

    @staticmethod
    def cat(parts: "Sequence[Hyperparameters]", dim: int = 0) -> "Hyperparameters":
        """Batches of functions one after the other; some may have no warps."""
        if any(p.warp is None for p in parts) and any(p.warp is not None for p in parts):
            parts = [p.with_identity_warp() for p in parts]
        names = parts[0].tensors()
        return Hyperparameters(
            **{n: torch.cat([p.tensors()[n] for p in parts], dim=dim) for n in names}
        )

    def with_identity_warp(self) -> "Hyperparameters":
        """The same with warps that change nothing, if there are none."""
        if self.warp is not None:
            return self
        identity = torch.zeros_like(self.lengthscale).unsqueeze(-2)
        return dataclasses.replace(self, warp=torch.cat([identity, identity], dim=-2))


@dataclass(frozen=True, kw_only=True)
class GPPrior:
    """Configuration of the prior; immutable, checked, and stored with corpora and weights."""

    name: str = "custom"
    kernel: Kernel = "se"
    min_dim: int = 1
    max_dim: int = 6
    lengthscale: Marginal = Marginal.lognormal(-0.75, 0.75, dim_power=0.5)
    noise_sd: Marginal = Marginal.lognormal(-4.0, 1.0)
    mean: Marginal = Marginal.normal(0.0, 0.5)
    output_variance: Marginal = Marginal.fixed(1.0)
    # Of each coordinate's warp, shape and shift; both fixed at 0: none.
    warp_shape: Marginal = Marginal.fixed(0.0)
    warp_shift: Marginal = Marginal.fixed(0.0)
    # How many functions have warps at all; the others have none in any coordinate.
    warp_probability: float = 1.0
    # Of Matern-5/2 against the squared exponential, in a mixed kernel.
    rough_odds: Marginal = Marginal.lognormal(0.0, 2.0)

    def __post_init__(self) -> None:
        if self.kernel not in KERNELS:
            raise ConfigError(f"kernel: must be one of {', '.join(KERNELS)}, not {self.kernel!r}.")
        if not 1 <= self.min_dim <= self.max_dim <= MAX_DIM:
            raise ConfigError(
                f"min_dim, max_dim: need 1 <= min_dim <= max_dim <= {MAX_DIM}, "
                f"not {self.min_dim} and {self.max_dim}."
            )
        for field, positive in (
            ("lengthscale", True),
            ("noise_sd", True),
            ("output_variance", True),
            ("rough_odds", True),
            ("mean", False),
            ("warp_shape", False),
            ("warp_shift", False),
        ):
            getattr(self, field)._check(field, positive=positive)
        if not 0.0 < self.warp_probability <= 1.0:
            raise ConfigError(f"warp_probability: must be in (0, 1], not {self.warp_probability}.")

    @property
    def warped(self) -> bool:
        """Whether coordinates are warped."""
        return any(m.scale > 0 or m.loc != 0 for m in (self.warp_shape, self.warp_shift))

    @property
    def models(self) -> "list[tuple[float, GPPrior]]":
        """The prior as a mixture of one without and one with warps: probabilities and priors."""
        if not self.warped or self.warp_probability == 1.0:
            return [(1.0, self)]
        none = Marginal.fixed(0.0)
        plain = dataclasses.replace(self, warp_shape=none, warp_shift=none, warp_probability=1.0)
        share = self.warp_probability
        return [(1.0 - share, plain), (share, dataclasses.replace(self, warp_probability=1.0))]

    def latent_size(self, d: int) -> int:
        """Length p of the standard normal vector behind one function; see `hyperparameters`."""
        return d + 3 + (2 * d if self.warped else 0) + (1 if self.kernel == "mixed" else 0)

    def hyperparameters(self, z: Tensor, d: int) -> Hyperparameters:
        """Map z, `... x p` in the order of `Hyperparameters`, to hyperparameters."""
        warp = roughness = None
        if self.warped:
            shape, shift = z[..., d + 3 : 3 * d + 3].tensor_split(2, dim=-1)
            warp = torch.stack(
                [self.warp_shape.transform(shape, d), self.warp_shift.transform(shift, d)], dim=-2
            )
        if self.kernel == "mixed":
            odds = self.rough_odds.transform(z[..., -1], d)
            roughness = odds / (1.0 + odds)
        return Hyperparameters(
            lengthscale=self.lengthscale.transform(z[..., :d], d),
            output_variance=self.output_variance.transform(z[..., d], d),
            noise_sd=self.noise_sd.transform(z[..., d + 1], d),
            mean=self.mean.transform(z[..., d + 2], d),
            warp=warp,
            roughness=roughness,
        )

    def sample(self, seeds: np.ndarray, d: int) -> Hyperparameters:
        """Draw one set of float64 hyperparameters per seed; a pure function of (seed, d)."""
        self.check_dim(d)
        rows, shares = [], []
        for seed in seeds:
            rng = np.random.Generator(np.random.Philox(key=int(seed)))
            rows.append(rng.standard_normal(self.latent_size(d)))
            shares.append(rng.random())
        hyper = self.hyperparameters(torch.from_numpy(np.stack(rows)), d)
        if hyper.warp is not None:
            plain = torch.from_numpy(np.stack(shares) >= self.warp_probability)
            hyper.warp[plain] = 0.0
        return hyper

    def check_dim(self, d: int) -> None:
        """Raise `ConfigError` unless this prior covers dimension `d`."""
        if not self.min_dim <= d <= self.max_dim:
            raise ConfigError(
                f"d={d} is outside prior {self.name!r}, "
                f"which covers d in {self.min_dim}..{self.max_dim}."
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values; `from_dict` inverts it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Rebuild a prior from `to_dict`; unknown or missing fields are a `ConfigError`.

        But for those that came later: without them a prior is what it was.
        """
        try:
            fields = {
                name: _complete(Marginal, value) if isinstance(value, dict) else value
                for name, value in values.items()
            }
            return _complete(cls, LATER | fields)
        except (TypeError, AttributeError) as error:
            raise ConfigError(f"not a GPPrior description: {error}.") from error


LATER = {
    name: getattr(GPPrior, name)
    for name in ("warp_shape", "warp_shift", "warp_probability", "rough_odds")
}


def _complete(cls: type[T], values: dict[str, Any]) -> T:
    """An instance of a dataclass from the values of all its fields."""
    missing = [f.name for f in dataclasses.fields(cls) if f.name not in values]  # type: ignore[arg-type]
    if missing:
        raise ConfigError(f"not a GPPrior description: {', '.join(missing)} missing.")
    return cls(**values)


PRIORS: dict[str, GPPrior] = {
    prior.name: prior
    for prior in (
        GPPrior(name="paper"),
        GPPrior(
            name="paper-1d",
            max_dim=1,
            lengthscale=Marginal.fixed(0.05),
            noise_sd=Marginal.fixed(0.1),
            mean=Marginal.fixed(0.0),
            output_variance=Marginal.fixed(10.0),
        ),
        # Standardised y can have noise sd 0.6 (Hartmann-6, noise 0.316): 3.5 sd out for `paper`.
        GPPrior(name="robust", max_dim=16, noise_sd=Marginal.lognormal(-3.0, 1.5)),
        GPPrior(
            name="real",
            kernel="mixed",
            max_dim=16,
            noise_sd=Marginal.lognormal(-5.0, 2.5),
            output_variance=Marginal.lognormal(0.0, 1.0),
            warp_shape=Marginal.normal(0.0, 0.35),
            warp_shift=Marginal.normal(0.0, 0.8),
            warp_probability=0.5,
        ),
    )
}


def named_prior(name: str) -> GPPrior:
    """The named prior, or a `ConfigError` listing the names there are."""
    try:
        return PRIORS[name]
    except KeyError:
        raise ConfigError(f"prior: no prior {name!r}; there are {', '.join(PRIORS)}.") from None
