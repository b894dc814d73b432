"""The fully Bayesian Gaussian-process prior over functions on the unit cube.

A function is drawn in two steps: hyperparameters from independent (log-)normal marginals, then

    f ~ GP(mean, output_variance * k(x, x'; lengthscale)),    y = f(x) + noise_sd * e.

Every hyperparameter is the image of a standard normal z: `loc + dim_power * log d + scale * z`,
exponentiated if `log`. A fixed value has scale 0. Inference over hyperparameters (the particles of
the kernel network) works on z, where the prior is N(0, I) whatever the named prior.

`paper` follows section 5 of Rakotoarison et al. (ICML 2026), "α-PFN: Fast Entropy Search via
In-Context Learning".
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from amortes.errors import ConfigError

Kernel = Literal["se", "matern52"]
KERNELS: tuple[Kernel, ...] = ("se", "matern52")
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

    lengthscale: Tensor  # ... x d
    output_variance: Tensor  # ...
    noise_sd: Tensor  # ...
    mean: Tensor  # ...

    @property
    def d(self) -> int:
        """Number of input dimensions."""
        return self.lengthscale.shape[-1]

    def to(self, dtype: torch.dtype) -> "Hyperparameters":
        """The same values in another floating-point type."""
        return Hyperparameters(*(t.to(dtype) for t in self.tensors()))

    def __getitem__(self, index: Any) -> "Hyperparameters":
        return Hyperparameters(*(t[index] for t in self.tensors()))

    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The four tensors, in field order."""
        return self.lengthscale, self.output_variance, self.noise_sd, self.mean


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
            ("mean", False),
        ):
            getattr(self, field)._check(field, positive=positive)

    def latent_size(self, d: int) -> int:
        """Length of the standard normal vector behind one function: d + 3."""
        return d + 3

    def hyperparameters(self, z: Tensor, d: int) -> Hyperparameters:
        """Map z, `... x (d + 3)` in the order of `Hyperparameters`, to hyperparameters."""
        return Hyperparameters(
            lengthscale=self.lengthscale.transform(z[..., :d], d),
            output_variance=self.output_variance.transform(z[..., d], d),
            noise_sd=self.noise_sd.transform(z[..., d + 1], d),
            mean=self.mean.transform(z[..., d + 2], d),
        )

    def sample(self, seeds: np.ndarray, d: int) -> Hyperparameters:
        """Draw one set of float64 hyperparameters per seed; a pure function of (seed, d)."""
        self.check_dim(d)
        rows = [
            np.random.Generator(np.random.Philox(key=int(s))).standard_normal(d + 3) for s in seeds
        ]
        return self.hyperparameters(torch.from_numpy(np.stack(rows)), d)

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
        """Rebuild a prior from `to_dict`; unknown or missing fields are a `ConfigError`."""
        try:
            fields = {
                name: _complete(Marginal, value) if isinstance(value, dict) else value
                for name, value in values.items()
            }
            return _complete(cls, fields)
        except (TypeError, AttributeError) as error:
            raise ConfigError(f"not a GPPrior description: {error}.") from error


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
    )
}


def named_prior(name: str) -> GPPrior:
    """The named prior, or a `ConfigError` listing the names there are."""
    try:
        return PRIORS[name]
    except KeyError:
        raise ConfigError(f"prior: no prior {name!r}; there are {', '.join(PRIORS)}.") from None
