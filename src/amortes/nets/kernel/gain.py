"""The alpha network: information gains from what a few draws of the optimum would tell.

For each draw of the optimum `sketch` says how much less uncertain the prediction at a query would
be, and how far it would move. A perceptron looks at every draw, another one at the average of what
it saw and at the query's own features. There is one such network for each gain, so that nobody pays
for a gain not asked for. Nothing depends on the number of observations or dimensions.

The gain is predicted in the unit of `features`, which the untrained network predicts.
"""

import torch
from torch import Tensor, nn

from amortes.nets.kernel.features import DRAW_FEATURES, QUERY_FEATURES


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
