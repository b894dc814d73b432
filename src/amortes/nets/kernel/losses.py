"""What the encoder learns from: datasets of the prior, standardised as data are in use.

Two terms. The first is the likelihood of the true hyperparameters, negative log q(z | D) per
coordinate: neural posterior estimation (Papamakarios & Murray, NeurIPS 2016; Mueller et al., ICLR
2022). It makes standard deviations right, but means that are a few of these off in a sharp valley
of the likelihood cost hundreds of nats. So the second is about the posterior density at the means,

    log(1 + gap),    gap = L(z after `STEPS` likelihood steps) - L(z),

L being that of `hyper_posterior`, whose gradient has a closed form: amortised optimisation (Amos,
"Tutorial on amortized optimization", 2023). It needs no true hyperparameters, so a third of the
datasets are skewed by a power transform before: results that no draw of the prior would give.

Shapes: b datasets, n observations, d dimensions.
"""

import numpy as np
import torch
from torch import Tensor

from amortes.nets.distributions.power import inverse_power_transform
from amortes.nets.kernel.encoder import (
    Encoder,
    inferred,
    standardise,
    standardised,
    to_posterior_order,
)
from amortes.nets.kernel.hyper_posterior import HyperPosterior
from amortes.nets.kernel.modes import find_modes
from amortes.prior.gp import GPPrior, Hyperparameters

STEPS = 3
"""Likelihood steps whose rise counts as the gap."""
WEIGHT = 0.3
"""Of the second term."""
SKEWS = (0.3, 0.6, 1.5, 2.0)
"""Powers of the datasets that are skewed, by turns."""
SKEWED = 3
"""Every how many-th dataset is."""


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
    return standardise(y)[0], skewed


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
