"""The per-cell transformer: the architecture of the paper, for any prior.

Every scalar of a dataset is a token of width E: each coordinate x_k of a row, and its y. A layer is

    attention across the cells of a row; attention across the rows of a column; an MLP,

each followed by adding the input and normalising it (post-norm). Rows of the context read each
other; a query row reads the context only, so its answer depends on no other query, and the keys
and values of the context are computed once per dataset. All columns share all weights and carry no
identity: reordering the features, or the observations, changes nothing.

What is known about the optimum is one more context row with its own encoders. Unlike the paper's
reference, TabPFN v2, queries use all heads and features have no random embeddings, since the prior
treats features alike.

Letters: b datasets, r rows, c = d + 1 cells in a row (y last), E width, h heads, e = E / h.

References: Hollmann et al. (Nature 2025), "Accurate predictions on small data with a tabular
foundation model"; Rakotoarison et al. (ICML 2026), "α-PFN: Fast Entropy Search via In-Context
Learning".
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, scaled_dot_product_attention

from amortes.errors import ConfigError, require_least
from amortes.nets.base import GAINS, Hint, Network
from amortes.nets.distributions import Riemann, asinh_borders, fit_borders
from amortes.prior.gp import GPPrior
from amortes.random import generator

Cache = tuple[Tensor, ...]
"""Keys and values of the context rows, side by side: per layer `b x (c h) x r x 2e`."""


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Size of the network; the defaults are the paper's, but for the bars of the gains."""

    width: int = 128
    layers: int = 8
    heads: int = 4
    hidden: int = 512
    # Frequencies at which a coordinate is seen, beside its value. The product of two such codes is
    # a function of the distance, which plain attention would first have to learn.
    waves: int = 0
    bars: int = 5000
    gain_bars: int = 500

    def __post_init__(self) -> None:
        require_least(self, width=1, layers=1, heads=1, hidden=1, waves=0, bars=3, gain_bars=3)
        if self.width % self.heads:
            raise ConfigError(f"width: must be a multiple of heads={self.heads}, not {self.width}.")


class Attention(nn.Module):
    """Multi-head attention along one axis of `b x r x c x E`.

    The other axis is merged with its neighbour, so that one call of the fused kernel serves all
    of it without a copy: `merge` is (0, 1) to attend across cells (a batch of b r), and (2, 3) to
    attend across rows (c h heads). The key and the value of a head lie side by side for that, too.
    """

    def __init__(self, width: int, heads: int, merge: tuple[int, int]) -> None:
        super().__init__()
        self.heads, self.merge = heads, merge
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        nn.init.zeros_(self.out.weight)

    def keys_values(self, x: Tensor) -> Tensor:
        """Keys and values of the cells x, `b x r x c x E`."""
        return self._split(self.key_value(x))

    def forward(self, x: Tensor, keys_values: Tensor) -> Tensor:
        """What the cells x, `b x r x c x E`, read from those with the given keys and values."""
        keys, values = keys_values.chunk(2, dim=-1)
        read = scaled_dot_product_attention(self._split(self.query(x)), keys, values)
        result: Tensor = self.out(read.transpose(1, 2).reshape(x.shape))  # b x r x c x E
        return result

    def _split(self, x: Tensor) -> Tensor:
        x = x.reshape(*x.shape[:3], self.heads, x.shape[3] // self.heads)  # b x r x c x h x e
        x = x.flatten(*self.merge)  # (b r) x c x h x e, or b x r x (c h) x e
        return x.transpose(1, 2)  # (b r) x h x c x e, or b x (c h) x r x e


class Layer(nn.Module):
    """Attention across cells, attention across rows, MLP."""

    def __init__(self, config: TransformerConfig, *, last: bool) -> None:
        super().__init__()
        self.last = last
        self.cells = Attention(config.width, config.heads, merge=(0, 1))
        self.rows = Attention(config.width, config.heads, merge=(2, 3))
        out = nn.Linear(config.hidden, config.width, bias=False)
        nn.init.zeros_(out.weight)
        self.mlp = nn.Sequential(nn.Linear(config.width, config.hidden, bias=False), nn.GELU(), out)

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Update the cells x, `b x r x c x E`, of queries, or of the context if that is None.

        Also returns the keys and values of the context. The last layer keeps the y cell only.
        """
        cells = x[:, :, -1:] if self.last else x  # the heads read nothing else: c = 1
        x = _normalise(cells + self.cells(cells, self.cells.keys_values(x)))
        context = self.rows.keys_values(x) if context is None else context
        x = _normalise(x + self.rows(x, context))
        return _normalise(x + self.mlp(x)), context


class Coordinate(nn.Module):
    """Encoder of a coordinate x in [0, 1]: linear in x and in its waves at k = 1..m half turns."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.waves = config.waves
        self.linear = nn.Linear(1 + 2 * config.waves, config.width)

    def forward(self, x: Tensor) -> Tensor:
        """Embed x, `...`: `... x E`."""
        x = x[..., None]
        angles = torch.pi * x * torch.arange(1, self.waves + 1, device=x.device)
        embedded: Tensor = self.linear(torch.cat([2.0 * x - 1.0, angles.cos(), angles.sin()], -1))
        return embedded


class Trunk(nn.Module):
    """Encoders of the cells, and the layers."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.x = Coordinate(config)
        self.y = nn.Linear(1, config.width)
        self.pending = nn.Parameter(torch.randn(config.width))  # y cell of a point under evaluation
        self.unknown = nn.Parameter(torch.randn(config.width))  # y cell of a query
        depth = config.layers
        self.layers = nn.ModuleList(Layer(config, last=i == depth - 1) for i in range(depth))

    def encode(self, X: Tensor, y: Tensor, X_pending: Tensor, *more_rows: Tensor) -> Cache:
        """Run the context: X `b x n x d`, y `b x n`, X_pending `b x p x d`, and rows of cells."""
        pending = self.pending.expand(*X_pending.shape[:2], -1)
        rows = [_rows(self.x, X, self.y(y[..., None])), _rows(self.x, X_pending, pending)]
        x = torch.cat([*rows, *more_rows], dim=1)  # b x r x c x E
        cache = []
        for layer in self.layers:
            x, keys_values = layer(x)
            cache.append(keys_values)
        return tuple(cache)

    def forward(self, Xq: Tensor, cache: Cache) -> Tensor:
        """Final y cells of queries `b x q x d`: `b x q x E`."""
        x = _rows(self.x, Xq, self.unknown.expand(*Xq.shape[:2], -1))  # b x q x c x E
        for layer, keys_values in zip(self.layers, cache, strict=True):
            x, _ = layer(x, keys_values)
        return x.squeeze(2)  # b x q x E


class HintRow(nn.Module):
    """Encoders of the optimum: the extra context row; a part not known is a learned embedding."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.x = Coordinate(config)
        self.f = nn.Linear(1, config.width)
        self.no_x = nn.Parameter(torch.randn(config.width))
        self.no_f = nn.Parameter(torch.randn(config.width))

    def forward(self, hint: Hint, X: Tensor) -> Tensor:
        """The row, `b x 1 x c x E`, for datasets X, `b x n x d`."""
        b, _, d = X.shape
        f = self.no_f.expand(b, 1, -1) if hint.f is None else self.f(hint.f.to(X)[:, None, None])
        if hint.x is not None:
            return _rows(self.x, hint.x.to(X)[:, None], f)
        return torch.cat([self.no_x.expand(b, 1, d, -1), f[:, :, None]], dim=2)


@dataclass(frozen=True, eq=False)
class TransformerState:
    """A dataset, and what each trunk made of it: computed when first asked for, then kept."""

    network: "Transformer"
    X: Tensor  # b x n x d
    y: Tensor  # b x n
    X_pending: Tensor  # b x p x d
    grad: bool  # whether gradients were enabled in `condition`

    @cached_property
    def base(self) -> Cache:
        """Keys and values for predictions."""
        return self._encode(self.network.base)

    @cached_property
    def alpha(self) -> Cache:
        """Keys and values for gains."""
        return self._encode(self.network.alpha)

    def hinted(self, hint: Hint) -> Cache:
        """Keys and values for predictions given the optimum; not kept."""
        network = self.network
        return network.base.encode(self.X, self.y, self.X_pending, network.hint_row(hint, self.X))

    def _encode(self, trunk: Trunk) -> Cache:
        # The mode of `condition`, not that of whichever query comes first: it may want no
        # gradients while the next one does, and nothing differentiates through inference tensors.
        with torch.inference_mode(False), torch.set_grad_enabled(self.grad):
            return trunk.encode(self.X, self.y, self.X_pending)


class Transformer(Network[TransformerState]):
    """The paper's base PFN, and an alpha PFN of the same shape that outputs all three gains.

    `condition` costs nothing by itself: the first `predict` and the first `gain` each run their
    trunk over the context, later ones reuse its keys and values. With a hint the context is run
    again, because its rows read the row of the optimum; hints serve training and analysis only.

    Any number of features is accepted, and an empty dataset too. Pending points are context rows
    with a learned embedding in place of y: it means something only to a network whose training
    passed some observed points, without their y, as `X_pending`.
    """

    borders: Tensor
    gain_borders: Tensor

    def __init__(self, config: TransformerConfig, prior: GPPrior) -> None:
        super().__init__()
        self._config, self.prior = config, prior
        self.base, self.alpha = Trunk(config), Trunk(config)
        self.hint_row = HintRow(config)
        self.head = _head(config, config.bars)
        self.gain_head = _head(config, len(GAINS) * config.gain_bars)
        self.register_buffer("borders", _prior_borders(prior, config.bars))
        self.register_buffer(
            "gain_borders", asinh_borders(config.gain_bars, limit=30.0, linear=0.01)
        )
        self.float()

    def condition(self, X: Tensor, y: Tensor, X_pending: Tensor | None = None) -> TransformerState:
        """Note the data: X `b x n x d` in the unit cube, y `b x n`, X_pending `b x p x d`."""
        pending = X[:, :0] if X_pending is None else X_pending
        grad = torch.is_grad_enabled()
        # Copies, since they are read later: the caller may use the memory again.
        with torch.inference_mode(False), torch.set_grad_enabled(grad):
            X, y, pending = (t.to(self.borders, copy=True) for t in (X, y, pending))
        return TransformerState(self, X, y, pending, grad)

    def with_pending(self, state: TransformerState, X_pending: Tensor | None) -> TransformerState:
        """Condition again: all rows of the context read pending ones."""
        return self.condition(state.X, state.y, X_pending)

    def predict(self, state: TransformerState, Xq: Tensor, hint: Hint | None = None) -> Riemann:
        """Distribution of a noisy observation y at Xq, `b x q x d`: batch shape `b x q`."""
        if hint is None or (hint.x is None and hint.f is None):
            cache = state.base
        else:
            cache = state.hinted(hint)
        logits = self.head(self.base(Xq.to(self.borders), cache))  # b x q x bars
        return Riemann(logits.to(Xq), self.borders)

    def gain(self, state: TransformerState, Xq: Tensor, names: Sequence[str] = GAINS) -> Riemann:
        """Distribution of the information gained at Xq; see `Network.gain`."""
        logits = self.gain_head(self.alpha(Xq.to(self.borders), state.alpha))
        logits = logits.reshape(*Xq.shape[:2], len(GAINS), self.config.gain_bars)  # b x q x 3 x m
        chosen = logits[:, :, [GAINS.index(name) for name in names]]
        return Riemann(chosen.to(Xq), self.gain_borders)

    def base_parameters(self) -> Iterator[nn.Parameter]:
        """Trunk, encoders of the optimum and bar head of the base network."""
        modules = (self.base, self.hint_row, self.head)
        return itertools.chain.from_iterable(module.parameters() for module in modules)

    def alpha_parameters(self) -> Iterator[nn.Parameter]:
        """Trunk and bar head of the alpha network."""
        return itertools.chain(self.alpha.parameters(), self.gain_head.parameters())

    def start_alpha(self) -> None:
        """Start the alpha trunk from the weights of the base trunk."""
        self.alpha.load_state_dict(self.base.state_dict())

    @property
    def config(self) -> TransformerConfig:
        """The configuration this network was built from."""
        return self._config


def _rows(encoder: nn.Module, X: Tensor, y_cells: Tensor) -> Tensor:
    """Cells of rows: X `b x r x d` and embedded `b x r x E` make `b x r x c x E`."""
    return torch.cat([encoder(X), y_cells[:, :, None]], dim=2)


def _normalise(x: Tensor) -> Tensor:
    return layer_norm(x, x.shape[-1:])


def _head(config: TransformerConfig, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(config.width, config.hidden), nn.GELU(), nn.Linear(config.hidden, outputs)
    )


def _prior_borders(prior: GPPrior, bars: int) -> Tensor:
    """Borders for y drawn from the prior, with a tenth of the draws spread out as far as maxima."""
    count, rng = 1 << 17, generator(0)
    z = torch.randn(count, prior.latent_size(prior.max_dim), generator=rng, dtype=torch.float64)
    hyper = prior.hyperparameters(z, prior.max_dim)
    deviation = torch.randn(count, generator=rng, dtype=torch.float64)
    # The largest of 200 maxima under the paper's prior with d = 6 was 5.4, and sd is 1 there.
    deviation[: count // 10] = torch.linspace(-6.0, 6.0, count // 10, dtype=torch.float64)
    sd = (hyper.output_variance + hyper.noise_sd.square()).sqrt()
    return fit_borders(hyper.mean + sd * deviation, bars)
