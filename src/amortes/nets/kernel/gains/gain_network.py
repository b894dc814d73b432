"""The gain network: two small perceptrons that stand in for draws of the optimum.

A draw s of the optimum tells two things: which particles are right, by their weights w_ks given the
draw, and what each of these then says of f(x). Of the weights only their products matter much,

    M_ij = mean over s of w_is w_js,    whose rows sum to w_i, the weights without a draw,

and of f(x) its mean m'_i(x) and variance v'_i(x), averaged over the draws as particle i weighs
them. Both are learned, for PES, MES and JES each, from closed-form conditioning on many draws (see
`amortes.training.lessons`):

    M_ij in proportion to w_i w_j exp(-D_ij), D_ii = 0, scaled to these sums    from the pair i, j
    v'_i = v_i expit(l_i + a_i),   m'_i = m_i + (c h_i + b_i) sqrt(v_i)         from the query

with D, a and b the outputs of the perceptrons, c a parameter, and l and h textbook moments, the
first two features (`gain_features`). `learned_gains` makes information gains of these.

Shapes: b datasets, k particles, q queries, P and F features, g gains.

Reference: Rakotoarison et al. (ICML 2026) learn the gain itself; Sinkhorn & Knopp, Pacific J. Math.
21, 1967 (scaling).
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from amortes.errors import require_least
from amortes.nets.base import GAINS
from amortes.nets.kernel.gains.gain_features import NUM_PAIR, NUM_QUERY
from amortes.nets.kernel.optimum.representers import RepresenterConfig

# Scalings of pairs, each by half of what is missing: for symmetric matrices a whole one overshoots.
SCALINGS = 30
# Features count up to so many standard deviations from their mean.
FURTHEST = 5.0


@dataclass(frozen=True, kw_only=True)
class GainConfig:
    """Size of the gain network, and what it looks at."""

    width: int = 48
    pair_width: int = 32
    representers: RepresenterConfig = RepresenterConfig(
        count=48, num_global=96, num_centres=8, per_centre=16
    )

    def __post_init__(self) -> None:
        require_least(self, width=1, pair_width=1)


class GainNetwork(nn.Module):
    """See the module's docstring."""

    pair_mean: Tensor  # P
    pair_sd: Tensor
    query_mean: Tensor  # F
    query_sd: Tensor

    def __init__(self, config: GainConfig) -> None:
        super().__init__()
        self.config, g = config, len(GAINS)
        self.pairs = _perceptron(NUM_PAIR, config.pair_width, g)
        self.queries = _perceptron(NUM_QUERY, config.width, 2 * g)
        for parameter in self.queries[-1].parameters():  # begins with the textbook moments
            nn.init.zeros_(parameter)
        self.scale = nn.Parameter(torch.zeros(g))
        for name, count in (("pair", NUM_PAIR), ("query", NUM_QUERY)):
            self.register_buffer(f"{name}_mean", torch.zeros(count))
            self.register_buffer(f"{name}_sd", torch.ones(count))

    @torch.no_grad()
    def standardise(self, pairs: Tensor, queries: Tensor) -> None:
        """Take means and standard deviations of features from samples, `... x P` and `... x F`."""
        for name, features in (("pair", pairs), ("query", queries)):
            flat = features.flatten(0, -2)
            getattr(self, f"{name}_mean").copy_(flat.mean(0))
            getattr(self, f"{name}_sd").copy_(flat.std(0) + 1e-3)

    def joint_weights(self, pairs: Tensor, weights: Tensor) -> Tensor:
        """The matrices M: pairs `b x k x k x P`, weights `b x k`, M `b x g x k x k`."""
        distance = softplus(self.pairs((pairs - self.pair_mean) / self.pair_sd)).movedim(-1, 1)
        off_diagonal = 1.0 - torch.eye(weights.shape[-1], dtype=weights.dtype)
        log_weights = weights.clamp_min(1e-9).log()[:, None]  # b x 1 x k
        log_joint = log_weights[..., None] + log_weights[..., None, :] - distance * off_diagonal
        log_factor = torch.zeros_like(log_joint[..., 0])
        for _ in range(SCALINGS):
            sums = (log_joint + log_factor[..., None, :]).logsumexp(-1) + log_factor
            log_factor = log_factor + 0.5 * (log_weights - sums)
        return (log_joint + log_factor[..., None] + log_factor[..., None, :]).exp()

    def moments(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Shift of the mean in sds and the share of the variance that is left, `b x g x k x q`.

        Of features `b x k x q x F`.
        """
        read = ((queries - self.query_mean) / self.query_sd).clamp(-FURTHEST, FURTHEST)
        log_odds, shift = self.queries(read).movedim(-1, 1).chunk(2, dim=1)
        left = (queries[:, None, ..., 0] + log_odds).sigmoid()
        return self.scale[:, None, None] * queries[:, None, ..., 1] + shift, left


def _perceptron(inputs: int, width: int, outputs: int) -> nn.Sequential:
    layers = nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
    return nn.Sequential(*layers, nn.Linear(width, outputs))
