"""The Riemann (bar) distribution: a histogram with half-normal tails, everything in closed form.

Bars 1..m-2 are uniform. Bar 0 is a half-normal that falls off to the left of borders[1], bar m-1
one that falls off to the right of borders[m-1]. The scale s of a tail is such that half of its
mass lies within the outer bar: s = width / Φ⁻¹(3/4). So the outermost borders set only the tails.

In bar i let t = (y - anchor_i) / scale_i; the log density given the bar is

    uniform   -log scale_i                                  anchor borders[i], scale the width
    tail      -log scale_i + log 2 - log sqrt(2 pi) - t²/2    anchor the inner border, scale s

Borders of equal mass would leave the widest bars in the upper tail, which is where optimisation
happens. `fit_borders` blends equal mass with equal width; `asinh_borders` suits information gains:
fine around zero, coarse far away, the same on both sides.

References: Müller et al., Transformers Can Do Bayesian Inference, ICLR 2022 (the distribution).
"""

import copy
import math
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.special import ndtri

from amortes.errors import ConfigError, DataError
from amortes.nets.distributions.base import Affine, Index, Predictive, expand_to, index_batch
from amortes.nets.distributions.normal import LOG_SQRT_2PI, log_h, log_normal, log_sum_exp, ndtr

HALF_NORMAL_MEDIAN = 0.6744897501960817
HALF_NORMAL_MEAN = math.sqrt(2.0 / math.pi)


class Riemann(Predictive):
    """Bars with probabilities softmax(logits `... x m`) between `borders` (`m+1`, shared)."""

    def __init__(self, logits: Tensor, borders: Tensor) -> None:
        borders = borders.to(logits)
        _check_borders(borders)
        if logits.shape[-1] != len(borders) - 1:
            raise DataError(
                f"logits of shape {tuple(logits.shape)} need {logits.shape[-1] + 1} borders in "
                f"their last dimension, got {len(borders)}."
            )
        self.log_probs = torch.log_softmax(logits, -1)
        self.borders = borders

    @cached_property
    def inner(self) -> Tensor:
        """All borders but the outermost, `m-1`."""
        return self.borders[1:-1].contiguous()

    @cached_property
    def anchor(self) -> Tensor:
        """See the module's docstring: `m`."""
        return torch.cat([self.inner[:1], self.inner])

    @cached_property
    def scale(self) -> Tensor:
        """See the module's docstring: `m`."""
        scale = self.borders.diff()
        scale[[0, -1]] /= HALF_NORMAL_MEDIAN
        return scale

    @cached_property
    def is_tail(self) -> Tensor:
        """1 for the two outer bars, else 0: `m`."""
        is_tail = torch.zeros_like(self.scale)
        is_tail[[0, -1]] = 1.0
        return is_tail

    @cached_property
    def log_height(self) -> Tensor:
        """Log density given the bar where t = 0: `m`."""
        return self.is_tail * (math.log(2.0) - LOG_SQRT_2PI) - self.scale.log()

    @cached_property
    def centres(self) -> Tensor:
        """The mean of y in each bar, `m`."""
        offset = torch.full_like(self.scale, 0.5)
        offset[0], offset[-1] = -HALF_NORMAL_MEAN, HALF_NORMAL_MEAN
        return self.anchor + offset * self.scale

    @property
    def batch_shape(self) -> torch.Size:
        """The shape `...` of the batch."""
        return self.log_probs.shape[:-1]

    @property
    def mean(self) -> Tensor:
        """Σ_i p_i E[y | bar i]."""
        return self.log_probs.exp() @ self.centres

    @property
    def variance(self) -> Tensor:
        """Σ_i p_i (Var[y | bar i] + (E[y | bar i] - mean)²)."""
        spread = torch.where(self.is_tail > 0, 1.0 - 2.0 / math.pi, 1.0 / 12.0)
        within = self.scale.square() * spread
        between = (self.centres - self.mean.unsqueeze(-1)).square()
        return (self.log_probs.exp() * (within + between)).sum(-1)

    def log_prob(self, y: Tensor) -> Tensor:
        """The log probability of y's bar plus the log density in it."""
        bar = self._bar(y)
        t = (y - self.anchor[bar]) / self.scale[bar]
        height = self.log_height[bar] - 0.5 * self.is_tail[bar] * t.square()
        return self._pick(self.log_probs, bar) + height

    def cdf(self, y: Tensor) -> Tensor:
        """The mass of the bars below y, and of y's own bar up to y."""
        bar = self._bar(y)
        probs = self.log_probs.exp()
        below, _ = self._split(y, bar)
        before = pad(probs.cumsum(-1), (1, 0))
        return self._pick(before, bar) + self._pick(probs, bar) * below

    def probability_of_improvement(self, best: Tensor) -> Tensor:
        """The mass of the bars above best, and of its own bar beyond it."""
        bar = self._bar(best)
        probs = self.log_probs.exp()
        _, above = self._split(best, bar)
        # From above and without a subtraction, so that small probabilities keep their digits.
        beyond = pad(probs.flip(-1).cumsum(-1).flip(-1), (0, 1))
        return self._pick(beyond, bar + 1) + self._pick(probs, bar) * above

    def icdf(self, p: Tensor) -> Tensor:
        """The p-quantile: the bar by bisection, the place in the bar in closed form."""
        p = expand_to(p, self.batch_shape)
        probs = self.log_probs.exp()
        cumulative = probs.cumsum(-1)
        cumulative = cumulative / cumulative[..., -1:]
        bar = self._search(cumulative.detach(), p.detach())
        mass = self._pick(probs, bar).clamp_min(torch.finfo(p.dtype).tiny)
        end = self._pick(cumulative, bar)
        start = self._pick(pad(cumulative, (1, 0)), bar)
        below = ((p - start) / mass).clamp(0.0, 1.0)
        above = ((end - p) / mass).clamp(0.0, 1.0)
        first, last = bar == 0, bar == len(self.anchor) - 1
        left = ndtri(torch.where(first, 0.5 * below, 0.25))
        right = -ndtri(torch.where(last, 0.5 * above, 0.25))
        t = torch.where(first, left, torch.where(last, right, below))
        return self.anchor[bar] + self.scale[bar] * t

    def entropy(self) -> Tensor:
        """Σ_i p_i (entropy within bar i - log p_i), with a half-normal's ½ - log height."""
        within = 0.5 * self.is_tail - self.log_height
        return (self.log_probs.exp() * (within - self.log_probs)).sum(-1)

    def cross_entropy(self, mean: Tensor, variance: Tensor) -> Tensor:
        """The target's mass per bar against the log density there, and E[t²] for the tails."""
        sd = variance.sqrt()
        beta = (self.inner - mean.unsqueeze(-1)) / sd.unsqueeze(-1)  # ... x m-1
        side = torch.where(beta < 0, -1.0, 1.0).to(beta.dtype)
        tail = ndtr(-side * beta)
        # Mass between two borders: on one side of the mean the difference of the tails beyond
        # them (Φ itself would round to 1), across the mean what both tails leave over.
        low, high = tail[..., :-1], tail[..., 1:]
        across = side[..., :-1] < side[..., 1:]
        middle = torch.where(across, 1.0 - low - high, (high - low).abs())
        mass_left = ndtr(beta[..., :1])
        mass_right = ndtr(-beta[..., -1:])
        mass = torch.cat([mass_left, middle, mass_right], -1)
        # E[t²; tail] of the Gaussian, measured from the tail's anchor.
        ends = torch.cat([beta[..., :1], -beta[..., -1:]], -1)
        masses = torch.cat([mass_left, mass_right], -1)
        second = (1.0 + ends.square()) * masses + ends * log_normal(ends).exp()
        quadratic = (second.clamp_min(0.0) / self.scale[[0, -1]].square()).sum(-1) * variance
        return 0.5 * quadratic - (mass * (self.log_probs + self.log_height)).sum(-1)

    def sample(self, generator: torch.Generator, shape: tuple[int, ...] = ()) -> Tensor:
        """Quantiles of uniform draws."""
        like = self.log_probs
        u = torch.rand(
            shape + self.batch_shape, generator=generator, dtype=like.dtype, device=like.device
        )
        with torch.no_grad():
            return self.icdf(u.clamp_min(0.25 * torch.finfo(like.dtype).eps))

    def log_expected_improvement(self, best: Tensor) -> Tensor:
        """The log of Σ_i p_i E[max(y - best, 0) | bar i]."""
        best = best.unsqueeze(-1)
        s_left, s_right = self.scale[0], self.scale[-1]
        width = self.scale[1:-1]
        # The left tail, cut off at best; without a difference of close numbers.
        rise = (self.inner[0] - best).clamp_min(0.0)
        erf = torch.erf(math.sqrt(0.5) * rise / s_left)
        lost = s_left * HALF_NORMAL_MEAN * torch.expm1(-0.5 * (rise / s_left).square())
        left = rise * erf + lost
        covered = torch.minimum((self.inner[1:] - best).clamp_min(0.0), width)
        middle = (self.inner[:-1] - best).clamp_min(0.0) + 0.5 * covered.square() / width
        gain = torch.cat([left, middle], -1)  # ... x m-1
        tiny = torch.finfo(gain.dtype).tiny
        log_gain = torch.where(gain > tiny, gain.clamp_min(tiny).log(), -math.inf)
        # The right tail never ends: best before it adds a constant, best inside it needs log h.
        excess = best - self.inner[-1]
        inside = math.log(2.0) + s_right.log() + log_h(-excess.clamp_min(0.0) / s_right)
        before = (s_right * HALF_NORMAL_MEAN - excess.clamp_max(0.0)).log()
        log_right = torch.where(excess > 0, inside, before)
        return log_sum_exp(self.log_probs + torch.cat([log_gain, log_right], -1))

    def affine(self, scale: Tensor, shift: Tensor) -> Predictive:
        """These bars (mirrored if the scale is negative) in other units."""
        if bool((scale > 0).all()):
            return Affine(self, scale, shift)
        if bool((scale < 0).all()):
            return Affine(Riemann(self.log_probs.flip(-1), -self.borders.flip(0)), -scale, shift)
        raise DataError("scale must be all positive or all negative; split the batch by sign.")

    def __getitem__(self, index: Index | tuple[Index, ...]) -> "Riemann":
        return self._with(index_batch(self.log_probs, index))

    def like(self, logits: Tensor) -> "Riemann":
        """The same bars with probabilities softmax(logits `... x m`), without a check.

        What is already known of the bars is not computed again.
        """
        return self._with(torch.log_softmax(logits, -1))

    def _with(self, log_probs: Tensor) -> "Riemann":
        other = copy.copy(self)  # with all that is known of the bars
        other.log_probs = log_probs
        return other

    def _bar(self, y: Tensor) -> Tensor:
        """The bar each y falls into, in the shape of y broadcast with the batch."""
        return torch.searchsorted(
            self.inner, expand_to(y.detach(), self.batch_shape).contiguous(), right=True
        )

    def _split(self, y: Tensor, bar: Tensor) -> tuple[Tensor, Tensor]:
        """The fractions of its bar's mass that lie below and above y."""
        t = (y - self.anchor[bar]) / self.scale[bar]
        beyond = 2.0 * ndtr(-t.abs())
        first, last = bar == 0, bar == len(self.anchor) - 1
        below = torch.where(first, beyond, torch.where(last, 1.0 - beyond, t))
        above = torch.where(first, 1.0 - beyond, torch.where(last, beyond, 1.0 - t))
        return below, above

    def _pick(self, table: Tensor, bar: Tensor) -> Tensor:
        """Entries of a `... x m` table; sample dimensions do not copy the table."""
        lead = bar.dim() - len(self.batch_shape)
        samples, batch = bar.shape[:lead], bar.shape[lead:]
        index = bar.reshape(-1, *batch).movedim(0, -1)
        picked = table.expand(*batch, table.shape[-1]).gather(-1, index)
        return picked.movedim(-1, 0).reshape(samples + batch)

    def _search(self, cumulative: Tensor, p: Tensor) -> Tensor:
        """The first bar of a `... x m` table of cumulative mass that reaches p."""
        lead = p.dim() - len(self.batch_shape)
        samples, batch = p.shape[:lead], p.shape[lead:]
        values = p.reshape(-1, *batch).movedim(0, -1).contiguous()
        table = cumulative.expand(*batch, cumulative.shape[-1]).contiguous()
        bar = torch.searchsorted(table, values).clamp_max(table.shape[-1] - 1)
        return bar.movedim(-1, 0).reshape(samples + batch)


def _check_borders(borders: Tensor) -> None:
    """Raise ConfigError unless `borders` (`m+1`) are finite, strictly increasing, and m >= 3."""
    if borders.dim() != 1 or borders.shape[0] < 4:
        raise ConfigError(
            f"borders must be a vector of at least 4 numbers (3 bars: two tails and one between), "
            f"got shape {tuple(borders.shape)}."
        )
    if not bool(torch.isfinite(borders).all()):
        raise ConfigError("borders must be finite, got NaN or infinity.")
    widths = borders.diff()
    if not bool((widths > 0).all()):
        i = int(widths.argmin())
        raise ConfigError(
            f"borders must be strictly increasing in {borders.dtype}, but borders[{i}] = "
            f"{borders[i].item():g} is followed by {borders[i + 1].item():g}; use fewer bars, "
            f"more even ones, or float64."
        )


def fit_borders(samples: Tensor, num_bars: int, blend: float = 0.5) -> Tensor:
    """`num_bars + 1` borders for data like `samples` (any shape), in their dtype.

    Border i is (1 - blend) times the sample quantile at (i + 1/2) / (num_bars + 1) plus blend
    times the equal-width grid between the first and the last of those quantiles.
    """
    if not 0.0 <= blend <= 1.0:
        raise ConfigError(f"blend must be between 0 (equal mass) and 1 (equal width), got {blend}.")
    if samples.numel() < 2 or not bool(torch.isfinite(samples).all()):
        raise ConfigError(
            f"samples must be at least two finite numbers, got shape {tuple(samples.shape)}"
            f"{'' if samples.numel() < 2 else ' with NaN or infinity'}."
        )
    ordered = samples.detach().double().flatten().sort().values
    level = (torch.arange(num_bars + 1, dtype=torch.float64) + 0.5) / (num_bars + 1)
    position = level * (len(ordered) - 1)
    below = position.long()
    mass = torch.lerp(
        ordered[below], ordered[(below + 1).clamp_max(len(ordered) - 1)], position % 1
    )
    even = torch.linspace(0.0, 1.0, num_bars + 1, dtype=torch.float64)
    width = torch.lerp(mass[0], mass[-1], even)
    borders = torch.lerp(mass, width, blend).to(samples.dtype)
    _check_borders(borders)
    return borders


def asinh_borders(num_bars: int, limit: float, linear: float) -> Tensor:
    """`num_bars + 1` float64 borders from -limit to limit, even in asinh(x / linear).

    Bars are about equally wide within ±linear and grow geometrically beyond.
    """
    if not (linear > 0.0 and 0.0 < limit < math.inf):
        raise ConfigError(f"limit and linear must be positive, got {limit} and {linear}.")
    end = math.asinh(limit / linear)
    borders = linear * torch.linspace(-end, end, num_bars + 1, dtype=torch.float64).sinh()
    borders = 0.5 * (borders - borders.flip(0))
    _check_borders(borders)
    return borders
