"""The alpha network: information gains from posterior correlations with candidate optima.

An evaluation at x is worth what it tells about the places where the optimum may be. So landmarks
(candidate optima) attend to each other, and queries attend to landmarks; posterior correlations
between the points, averaged over particles, enter the attention as bias and as values. Nothing
depends on the number of observations or dimensions.

The gain is predicted in units of a textbook estimate (`landmarks.textbook_gains`) plus small shares
of the joint one and of the reducible entropy log(1 + v / s^2) / 2, so that gains of 1e-4 nats late
in an optimisation are resolved as well as those of 1 nat at its beginning.
"""

import torch
from torch import Tensor, nn

from amortes.nets.kernel.conditioning import Conditioned, Moments
from amortes.nets.kernel.correction import best_mean
from amortes.nets.kernel.landmarks import Landmarks

LANDMARK_FEATURES = 10
QUERY_FEATURES = 14
EDGE_FEATURES = 4

# Shares of the joint gain and of the reducible entropy, and nats, added to the textbook gain to
# make the unit.
JOINT_SHARE = 0.2
REDUCIBLE_SHARE = 0.02
SMALLEST_UNIT = 1e-5


class EdgeAttention(nn.Module):
    """Attention of p tokens to m tokens with e features per pair, as bias and as values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.bias = nn.Sequential(nn.Linear(EDGE_FEATURES, 16), nn.SiLU(), nn.Linear(16, heads))
        self.edge_value = nn.Linear(heads * EDGE_FEATURES, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, memory: Tensor, edges: Tensor) -> Tensor:
        """x `b x p x w`, memory `b x m x w`, edges `b x p x m x e`: `b x p x w`."""
        q = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # b x h x p x w/h
        k, v = self.key_value(memory).unflatten(-1, (2, self.heads, -1)).unbind(2)
        scores = q @ k.permute(0, 2, 3, 1) / q.shape[-1] ** 0.5  # b x h x p x m
        attention = (scores + self.bias(edges).permute(0, 3, 1, 2)).softmax(-1)
        values = (attention @ v.transpose(1, 2)).transpose(1, 2).flatten(2)  # b x p x w
        pairs = torch.einsum("bhpm,bpme->bphe", attention, edges).flatten(2)
        mixed: Tensor = self.out(values + self.edge_value(pairs))
        return mixed


class Block(nn.Module):
    """Pre-norm attention and perceptron."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm_x, self.norm_m = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = EdgeAttention(width, heads)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor, memory: Tensor, edges: Tensor) -> Tensor:
        """Shapes as in `EdgeAttention`."""
        x = x + self.attention(self.norm_x(x), self.norm_m(memory), edges)
        out: Tensor = x + self.mlp(x)
        return out


class GainNetwork(nn.Module):
    """Landmark tokens -> query tokens -> logits over bars for PES, MES and JES."""

    def __init__(self, width: int, heads: int, layers: int, bars: int) -> None:
        super().__init__()
        self.bars = bars
        self.encode_landmarks = nn.Linear(LANDMARK_FEATURES, width)
        self.encode_queries = nn.Linear(QUERY_FEATURES, width)
        self.landmark_blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.query_blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.out = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 2 * width),
            nn.SiLU(),
            nn.Linear(2 * width, 3 * bars),
        )

    def tokens(self, features: Tensor, edges: Tensor) -> Tensor:
        """Landmark tokens `b x m x w` from features `b x m x F` and edges `b x m x m x e`."""
        x: Tensor = self.encode_landmarks(features)
        for block in self.landmark_blocks:
            x = block(x, x, edges)
        return x

    def forward(self, features: Tensor, edges: Tensor, tokens: Tensor) -> Tensor:
        """Logits `b x q x 3 x bars` from query features `b x q x F`, edges `b x q x m x e`."""
        x = self.encode_queries(features)
        for block in self.query_blocks:
            x = block(x, tokens, edges)
        logits: Tensor = self.out(x).unflatten(-1, (3, self.bars))
        return logits


def pooled(conditioned: Conditioned, at: Moments) -> list[Tensor]:
    """Particle-averaged features of points, each `b x q`: shared by landmarks and queries."""
    w = conditioned.particles.log_weights.exp()[..., None]

    def average(t: Tensor) -> Tensor:
        return (w * t).sum(1)

    best = best_mean(conditioned)
    below = ((at.mean - best) / at.sd).asinh()
    spread = average((at.mean - average(at.mean)[:, None]).square()).clamp_min(1e-12)
    noise = conditioned.noise_variance[..., None]
    return [
        average(below),
        average(at.mean - best),
        average(at.sd.log()),
        spread.log() / 2,
        average((1.0 + at.variance / noise).log()) / 2,
        average(noise.log()).expand_as(spread) / 2,
    ]


def landmark_features(conditioned: Conditioned, landmarks: Landmarks) -> Tensor:
    """`b x m x F`, float32."""
    m = landmarks.share
    columns = [
        *pooled(conditioned, landmarks.moments),
        m.sqrt() * 4.0,
        *_context(conditioned, m),
        _on_face(landmarks.X),
    ]
    return torch.stack(columns, dim=-1).float()


def query_features(
    conditioned: Conditioned, Xq: Tensor, at_q: Moments, textbook: Tensor, cross_share: Tensor
) -> Tensor:
    """`b x q x F`, float32; `textbook` are the gains `b x q x 3`."""
    columns = [
        *pooled(conditioned, at_q),
        *((textbook + SMALLEST_UNIT).log() / 3.0).unbind(-1),
        (textbook[..., 2] + SMALLEST_UNIT).log() / 3.0
        - (textbook[..., 1] + SMALLEST_UNIT).log() / 3.0,
        cross_share,
        *_context(conditioned, cross_share),
        _on_face(Xq),
    ]
    return torch.stack(columns, dim=-1).float()


def unit(conditioned: Conditioned, at_q: Moments, textbook: Tensor) -> Tensor:
    """The scale in which gains are predicted, `b x q x 3`."""
    w = conditioned.particles.log_weights.exp()[..., None]
    ratio = at_q.variance / conditioned.noise_variance[..., None]
    reducible = 0.5 * (w * (1.0 + ratio).log()).sum(1)[..., None]
    joint = textbook[..., 2:]  # knows more than the other two, so bounds them
    return textbook + JOINT_SHARE * joint + REDUCIBLE_SHARE * reducible + SMALLEST_UNIT


def edges(conditioned: Conditioned, at_q: Moments, at_m: Moments, cross: Tensor) -> Tensor:
    """Pair features `b x q x m x e`, float32, from posterior covariances `b x k x q x m`."""
    w = conditioned.particles.log_weights.exp()[..., None, None]
    correlation = cross / (at_q.variance[..., :, None] * at_m.variance[..., None, :]).sqrt()
    correlation = correlation.clamp(-1.0, 1.0).float()
    w = w.float()
    # Share of the landmark's variance that a noisy observation at the query would remove.
    noise = conditioned.noise_variance[..., None]
    signal = (at_q.variance / (at_q.variance + noise)).float()[..., None]
    removed = correlation.square() * signal
    square = (w * correlation.square()).sum(1)
    return torch.stack(
        [
            (w * correlation).sum(1),
            square,
            (w * removed).sum(1),
            (1.0 + 1e-4 - square).log() / 3.0,
        ],
        dim=-1,
    )


def _context(conditioned: Conditioned, like: Tensor) -> list[Tensor]:
    n = torch.tensor(float(conditioned.num_observed), dtype=like.dtype)
    d = torch.tensor(float(conditioned.X.shape[-1]), dtype=like.dtype)
    return [n.log().expand_as(like) / 3.0, d.log().expand_as(like)]


def _on_face(X: Tensor) -> Tensor:
    """Share of a point's coordinates that are on the boundary: `b x q`."""
    return ((X <= 0.0) | (X >= 1.0)).to(X.dtype).mean(-1)
