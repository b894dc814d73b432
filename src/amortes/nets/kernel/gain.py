"""The alpha network: information gains from what a few draws of the optimum would tell.

For each draw of the optimum `sketch` says how much less uncertain the prediction at a query would
be, and how far it would move. A perceptron looks at every draw, another one at the average of what
it saw and at the query's own features. There is one such network for each gain, so that nobody pays
for a gain not asked for. Nothing depends on the number of observations or dimensions.

The gain is predicted in units of the sketched one, plus a small share of the reducible entropy
log(1 + v / s^2) / 2, so that gains of 1e-4 nats late in an optimisation are resolved as well as
those of 1 nat at its beginning. The untrained network predicts the unit.
"""

import math

import torch
from torch import Tensor, nn

from amortes.nets.kernel.conditioning import Conditioned, Moments
from amortes.nets.kernel.correction import best_mean
from amortes.nets.kernel.sketch import Sketch, Terms

DRAW_FEATURES = 4
QUERY_FEATURES = 11

# Share of the reducible entropy, and nats, that are added to make the unit.
REDUCIBLE_SHARE = 0.002
SMALLEST_UNIT = 1e-5


class Residual(nn.Module):
    """Pre-norm perceptron."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """x `... x w`: the same shape."""
        out: Tensor = x + self.mlp(x)
        return out


class GainNetwork(nn.Module):
    """Features of draws and queries -> logits over bars of one gain."""

    def __init__(self, width: int, layers: int, bars: int) -> None:
        super().__init__()
        self.encode_draws = nn.Sequential(
            nn.Linear(DRAW_FEATURES, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.encode_queries = nn.Linear(QUERY_FEATURES, width)
        self.join = nn.Linear(width, width)
        self.blocks = nn.Sequential(*(Residual(width) for _ in range(layers)))
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, bars))

    def start_at(self, value: float, borders: Tensor) -> None:
        """Predict about this value, whatever the features; borders are `bars + 1`."""
        last = self.out[-1]
        assert isinstance(last, nn.Linear)
        centres = 0.5 * (borders[1:] + borders[:-1]).float()
        logits = (borders.diff().float().log() - 2.0 * (centres - value).square()).clamp_min(-12.0)
        with torch.no_grad():
            nn.init.normal_(last.weight, std=0.01)
            last.bias.copy_(logits)

    def forward(self, draws: Tensor, queries: Tensor) -> Tensor:
        """Logits `b x q x bars` from features `b x q x s x F` and `b x q x F`."""
        dtype = self.join.weight.dtype
        seen = self.encode_draws(draws.to(dtype)).mean(2)
        x = self.encode_queries(queries.to(dtype)) + self.join(seen)
        logits: Tensor = self.out(self.blocks(x))
        return logits


def draw_features(sketch: Sketch, at_q: Moments, terms: Terms, unit: Tensor) -> Tensor:
    """`b x q x s x F`; `unit` is that of the gain, `b x q`."""
    conditioned = sketch.conditioned
    w = conditioned.particles.log_weights.exp()[..., None]
    f = sketch.optima.f[:, None]  # b x 1 x s
    best = (w * best_mean(conditioned)).sum(1)[..., None]
    sd = (w * at_q.sd).sum(1)[..., None]  # b x q x 1
    mean = (w * at_q.mean).sum(1)[..., None]
    columns = [
        (terms.gain / unit[..., None]).asinh(),
        terms.shift.asinh(),
        (f - best).expand(*sd.shape[:2], -1),
        ((f - mean) / sd).asinh(),
    ]
    return torch.stack(columns, dim=-1)


def query_features(
    conditioned: Conditioned, at_q: Moments, sketched: Tensor, unit: Tensor
) -> Tensor:
    """`b x q x F`; the sketched gain and its unit are `b x q`."""
    w = conditioned.particles.log_weights.exp()[..., None]
    noise = conditioned.noise_variance[..., None]
    gap = at_q.mean - best_mean(conditioned)
    sd, middle = at_q.sd, (w * at_q.mean).sum(1, keepdim=True)
    reducible = (1.0 + at_q.variance / noise).log() / 2
    by_particle = torch.stack([(gap / sd).asinh(), gap, sd.log(), reducible], dim=-1)
    averages = (w[..., None] * by_particle).sum(1)  # b x q x 4
    spread = (w * (at_q.mean - middle).square()).sum(1).clamp_min(1e-12)
    n, d = conditioned.num_observed, conditioned.X.shape[-1]
    own = torch.cat([(w * noise.log()).sum(1) / 2, w.square().sum(1)], dim=-1)[:, None]  # b x 1 x 2
    size = own.new_tensor([math.log(n) / 3.0, math.log(d)]).expand_as(own)
    shape = (*spread.shape, -1)
    columns = [
        averages,
        spread[..., None].log() / 2,
        unit[..., None].log() / 3.0,
        (sketched / unit)[..., None],
        own.expand(shape),
        size.expand(shape),
    ]
    return torch.cat(columns, dim=-1)


def gain_unit(conditioned: Conditioned, at_q: Moments, sketched: Tensor) -> Tensor:
    """The scale in which a gain is predicted, `b x q`, from the sketched one."""
    w = conditioned.particles.log_weights.exp()[..., None]
    ratio = at_q.variance / conditioned.noise_variance[..., None]
    reducible = 0.5 * (w * (1.0 + ratio).log()).sum(1)
    return sketched.clamp_min(0.0) + REDUCIBLE_SHARE * reducible + SMALLEST_UNIT
