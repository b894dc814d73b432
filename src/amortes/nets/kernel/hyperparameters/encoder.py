"""Learned inference: a network that reads a dataset and proposes its hyperparameters.

Every pair of a coordinate and an observation is a token, (x_ik, y_i). A layer lets the tokens of
one coordinate attend to each other across observations, then tells each of them the average over
the coordinates of its observation. The pooled tokens of a coordinate give mean and standard
deviation of its lengthscale and its warp, those of all coordinates the same for output variance,
noise and roughness: a diagonal Gaussian over the standard normal coordinates z of the prior,
whatever the order and number of coordinates and observations. There is one for each model of a
prior that is a mixture (`GPPrior.models`).

What it proposes is refined by the real likelihood (`inference`), so that it need not be exact, and
may be wrong where data leave the prior.

It learns from datasets of the prior, standardised as data are in use, by two terms. The first is
the likelihood of the true hyperparameters, negative log q(z | D) per coordinate: neural posterior
estimation (Papamakarios & Murray, NeurIPS 2016; Mueller et al., ICLR 2022). It makes standard
deviations right, but means that are a few of these off in a sharp valley of the likelihood cost
hundreds of nats. So the second is about the posterior density at the means,

    log(1 + gap),    gap = L(z after `STEPS` likelihood steps) - L(z),

L being that of `hyper_posterior`, whose gradient has a closed form: amortised optimisation (Amos,
"Tutorial on amortized optimization", 2023). It needs no true hyperparameters, so a third of the
datasets are skewed by a power transform before: results that no draw of the prior would give.

Shapes: b datasets, n observations, d dimensions, w width.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from amortes.errors import ConfigError, require_least
from amortes.nets.distributions.power import inverse_power_transform
from amortes.nets.kernel.hyperparameters.hyper_posterior import HyperPosterior
from amortes.nets.kernel.hyperparameters.particles import find_modes
from amortes.prior.gp import GPPrior, Hyperparameters

PER_COORDINATE = 3  # lengthscale, shape and shift of the warp
SHARED = 3  # output variance, noise, roughness
FURTHEST = 4.0
"""Means are within so many standard deviations of the prior."""
LOG_SD = (-4.0, 0.5)
STEPS = 3
"""Likelihood steps whose rise counts as the gap."""
WEIGHT = 0.3
"""Of the second term of the loss."""
SKEWS = (0.3, 0.6, 1.5, 2.0)
"""Powers of the datasets of a batch that are skewed, by turns."""
SKEWED = 3
"""Every how many-th dataset is."""


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Size of the network."""

    width: int = 64
    layers: int = 3
    heads: int = 4

    def __post_init__(self) -> None:
        require_least(self, width=1, layers=1, heads=1)
        if self.width % self.heads:
            raise ConfigError(
                f"width: must be a multiple of heads ({self.heads}), not {self.width}."
            )


class Layer(nn.Module):
    """Attention across observations, averages across coordinates, perceptron."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        w = config.width
        self.heads = config.heads
        self.norms = nn.ModuleList(nn.LayerNorm(w) for _ in range(3))
        self.qkv, self.out = nn.Linear(w, 3 * w), nn.Linear(w, w)
        self.across = nn.Linear(2 * w, w)
        self.mlp = nn.Sequential(nn.Linear(w, 2 * w), nn.GELU(), nn.Linear(2 * w, w))

    def forward(self, h: Tensor) -> Tensor:
        """Tokens `b x d x n x w`: the same shape."""
        b, d, n, w = h.shape
        qkv = self.qkv(self.norms[0](h)).reshape(b * d, n, 3, self.heads, w // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v)
        h = h + self.out(seen.transpose(1, 2).reshape(b, d, n, w))
        own = self.norms[1](h)
        pooled = torch.cat([own.mean(1), own.amax(1)], dim=-1)  # b x n x 2w
        h = h + self.across(pooled)[:, None]
        out: Tensor = h + self.mlp(self.norms[2](h))
        return out


class Encoder(nn.Module):
    """X, y -> a diagonal Gaussian over z for each of `models` models of the prior."""

    def __init__(self, config: EncoderConfig, models: int) -> None:
        super().__init__()
        w = config.width
        self.models = models
        self.read = nn.Sequential(nn.Linear(4, w), nn.GELU(), nn.Linear(w, w))
        self.size = nn.Linear(2, w)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.by_coordinate = nn.Sequential(
            nn.LayerNorm(2 * w), nn.Linear(2 * w, w), nn.GELU(),
            nn.Linear(w, 2 * PER_COORDINATE * models),
        )  # fmt: skip
        self.shared = nn.Sequential(
            nn.LayerNorm(2 * w), nn.Linear(2 * w, w), nn.GELU(), nn.Linear(w, 2 * SHARED * models)
        )
        for head in (self.by_coordinate, self.shared):
            last = head[-1]
            assert isinstance(last, nn.Linear)
            nn.init.zeros_(last.weight)  # the prior
            nn.init.zeros_(last.bias)

    def forward(self, X: Tensor, y: Tensor) -> list[tuple[Tensor, Tensor]]:
        """For each model mean and log sd: of coordinates `b x 3 x d`, then of the others `b x 3`.

        Both as one tensor each: `b x (3 d + 3)`, lengthscales, shapes, shifts, then output
        variance, noise, roughness.
        """
        dtype = self.size.weight.dtype
        b, n, d = X.shape
        x, z = X.to(dtype).mT, y.to(dtype)[:, None].expand(b, d, n)  # b x d x n
        tokens = torch.stack([2.0 * x - 1.0, (2.0 * x - 1.0).square() - 1 / 3, z, x * z], dim=-1)
        size = torch.tensor([math.log(n) / 3.0, math.log(d)], dtype=dtype)
        h = self.read(tokens) + self.size(size)
        for layer in self.layers:
            h = layer(h)
        pooled = torch.cat([h.mean(2), h.amax(2)], dim=-1)  # b x d x 2w
        own = self.by_coordinate(pooled).reshape(b, d, self.models, 2, PER_COORDINATE)
        shared = self.shared(pooled.mean(1)).reshape(b, self.models, 2, SHARED)
        both = torch.cat([own.permute(0, 2, 3, 4, 1).flatten(3), shared], dim=-1)  # b x m x 2 x p
        mean, log_sd = both.unbind(2)
        mean = FURTHEST * torch.tanh(mean / FURTHEST)
        return [(mean[:, i], log_sd[:, i].clamp(*LOG_SD)) for i in range(self.models)]


def propose(encoder: Encoder, prior: GPPrior, X: Tensor, y: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Mean and log sd of z for data y, `b x n`, on whatever scale, for each model of the prior."""
    z, sd = _standardise(y)
    d, shift = X.shape[-1], torch.zeros_like(y[:, :1]).repeat(1, 3 * X.shape[-1] + SHARED)
    for place, marginal, power in (
        (3 * d, prior.output_variance, 2.0),
        (3 * d + 1, prior.noise_sd, 1.0),
    ):
        if marginal.scale > 0:
            shift[:, place] = power * sd.log() / marginal.scale
    return [
        ((mean.to(y) + shift).clamp(-FURTHEST, FURTHEST), log_sd.to(y))
        for mean, log_sd in encoder(X, z)
    ]


def standardised(prior: GPPrior, y: Tensor, hyper: Hyperparameters) -> tuple[Tensor, Tensor]:
    """y, `b x n`, with mean 0 and sd 1, and the z of its hyperparameters: `b x (3 d + 3)`.

    In the order of the encoder; zero where there is nothing to infer.
    """
    d = hyper.d
    y, sd = _standardise(y)
    warp = hyper.with_identity_warp().warp
    assert warp is not None
    shape, shift = warp.unbind(-2)
    rough = hyper.roughness
    odds = torch.ones_like(sd) if rough is None else rough / (1.0 - rough).clamp_min(1e-300)
    parts = [
        prior.lengthscale.latent(hyper.lengthscale, d),
        prior.warp_shape.latent(shape, d),
        prior.warp_shift.latent(shift, d),
        prior.output_variance.latent(hyper.output_variance / sd.square(), d)[:, None],
        prior.noise_sd.latent(hyper.noise_sd / sd, d)[:, None],
        prior.rough_odds.latent(odds, d)[:, None],
    ]
    return y, torch.cat(parts, dim=-1).clamp(-FURTHEST, FURTHEST)


def _standardise(y: Tensor) -> tuple[Tensor, Tensor]:
    """y, `b x n`, with mean 0 and sd 1, and what the sd was: `b`; a single value has none."""
    sd = y.std(-1).clamp_min(1e-6) if y.shape[1] > 1 else torch.ones_like(y[:, 0])
    return (y - y.mean(-1, keepdim=True)) / sd[:, None], sd


def inferred(prior: GPPrior, d: int) -> Tensor:
    """Which coordinates of the encoder's z this prior has: `3 d + 3`, bool."""
    per_coordinate = [prior.lengthscale, prior.warp_shape, prior.warp_shift]
    flags = [m.scale > 0 for m in per_coordinate for _ in range(d)]
    rough = prior.kernel == "mixed" and prior.rough_odds.scale > 0
    flags += [prior.output_variance.scale > 0, prior.noise_sd.scale > 0, rough]
    return torch.tensor(flags)


def to_posterior_order(prior: GPPrior, z: Tensor, d: int) -> Tensor:
    """Coordinates `... x (3 d + 3)` of the encoder as those of `HyperPosterior`: `... x p`."""
    lengths, warps, shared = torch.split_with_sizes(z, [d, 2 * d, SHARED], dim=-1)
    parts = [lengths, shared[..., :2]]
    if prior.warped:
        parts.append(warps)
    if prior.kernel == "mixed":
        parts.append(shared[..., 2:])
    return torch.cat(parts, dim=-1)


def inference_loss(
    encoder: Encoder, prior: GPPrior, X: Tensor, y: Tensor, hyper: Hyperparameters
) -> dict[str, Tensor]:
    """The loss for data X, `b x n x d`, and y, `b x n`, and its terms: `density` and `gap`."""
    y, target = standardised(prior, y, hyper)
    y, skewed = _skew(y)
    proposals = encoder(X, y)
    density = _negative_log_density(prior, proposals, target, hyper, ~skewed)
    gap = _gap(prior, proposals, X.double(), y.double())
    return {"loss": density + WEIGHT * gap, "density": density, "gap": gap}


def _skew(y: Tensor) -> tuple[Tensor, Tensor]:
    """Standardised y, `b x n`, some of it skewed, and which of the datasets are: `b`, bool."""
    skewed = torch.arange(len(y)) % SKEWED == SKEWED - 1
    if y.shape[1] == 1:
        return y, skewed
    y = y.clone()
    for i, row in enumerate(skewed.nonzero().flatten().tolist()):
        y[row] = inverse_power_transform(y[row], SKEWS[i % len(SKEWS)])
    return _standardise(y)[0], skewed


def _negative_log_density(
    prior: GPPrior,
    proposals: list[tuple[Tensor, Tensor]],
    target: Tensor,
    hyper: Hyperparameters,
    counted: Tensor,
) -> Tensor:
    """Of the true z under the proposals, per coordinate of z, up to a constant."""
    used = target.new_zeros(len(target), len(prior.models), target.shape[-1])
    for i, (_, model) in enumerate(prior.models):
        used[:, i] = inferred(model, hyper.d).to(used)
        if len(prior.models) > 1 and hyper.warp is not None:
            warped = hyper.warp.flatten(1).any(1)
            used[:, i] *= (warped == model.warped)[:, None]
    used *= counted[:, None, None]
    losses = []
    for i, (mean, log_sd) in enumerate(proposals):
        error = (target.to(mean) - mean) * (-log_sd).exp()
        losses.append((used[:, i] * (0.5 * error.square() + log_sd)).sum(-1))
    each = torch.stack(losses).sum(0) / used.sum((1, 2)).clamp_min(1.0)
    return each.sum() / counted.sum().clamp_min(1)


def _gap(prior: GPPrior, proposals: list[tuple[Tensor, Tensor]], X: Tensor, y: Tensor) -> Tensor:
    """Mean of log(1 + gap) over datasets and models."""
    gaps = []
    for (_, model), (mean, _) in zip(prior.models, proposals, strict=True):
        z = to_posterior_order(model, mean, X.shape[-1])
        posterior, start = HyperPosterior(model, X.numpy(), y.numpy()), z.detach().double().numpy()
        value, gradient, _ = posterior.derivatives(start)
        gap = np.maximum(find_modes(posterior, start, STEPS).value - value, 0.0)
        slope = torch.from_numpy(-gradient / (1.0 + gap)[:, None]).to(z)
        # The value is that of the gap; its gradient by z is the slope, with the end kept.
        along = (slope * z).sum(-1)
        gaps.append(torch.from_numpy(np.log1p(gap)).to(z) + along - along.detach())
    return torch.stack(gaps).mean()
