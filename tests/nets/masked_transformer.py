"""The transformer's forward pass written out: all rows at once, under a mask, without any cache."""

import torch
from torch import Tensor, nn

from amortes.nets.base import Hint
from amortes.nets.transformer import Attention, Coordinate, Layer, Transformer


def full_attention(attention: Attention, x: Tensor, visible: Tensor) -> Tensor:
    """Attention over the last-but-one axis of `... x l x E`, written out; `visible` is l x l."""
    h, E = attention.heads, x.shape[-1]
    e = E // h
    key_value = attention.key_value.weight.reshape(h, 2, e, E)
    heads = []
    for i in range(h):
        q = x @ attention.query.weight[i * e : (i + 1) * e].T
        k, v = x @ key_value[i, 0].T, x @ key_value[i, 1].T
        scores = (q @ k.mT / e**0.5).masked_fill(~visible, -torch.inf)
        heads.append(scores.softmax(-1) @ v)
    return torch.cat(heads, -1) @ attention.out.weight.T


def standardise(x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def full_forward(
    network: Transformer, X: Tensor, y: Tensor, X_pending: Tensor, Xq: Tensor, hint: Hint
) -> Tensor:
    """Log probabilities of the bars with all rows in one masked pass, without any cache."""
    trunk, extra, b, d = network.base, network.hint_row, X.shape[0], X.shape[2]

    def scalar(linear: nn.Linear, value: Tensor) -> Tensor:
        return value[..., None] * linear.weight[:, 0] + linear.bias

    def coordinate(encoder: Coordinate, x: Tensor) -> Tensor:
        weights = encoder.linear.weight.T  # of the value, of all cosines, of all sines
        waves = (len(weights) - 1) // 2
        cells = (2 * x - 1)[..., None] * weights[0] + encoder.linear.bias
        for k in range(1, waves + 1):
            cells = cells + (torch.pi * k * x).cos()[..., None] * weights[k]
            cells = cells + (torch.pi * k * x).sin()[..., None] * weights[waves + k]
        return cells

    def row(x_cells: Tensor, y_cell: Tensor) -> Tensor:
        return torch.cat([x_cells, y_cell.expand(b, -1)[:, None]], dim=1)  # b x c x E

    rows = [row(coordinate(trunk.x, X[:, i]), scalar(trunk.y, y[:, i])) for i in range(X.shape[1])]
    rows += [row(coordinate(trunk.x, p), trunk.pending) for p in X_pending.unbind(1)]
    if hint.x is not None or hint.f is not None:
        x_cells = extra.no_x.expand(b, d, -1) if hint.x is None else coordinate(extra.x, hint.x)
        rows.append(row(x_cells, extra.no_f if hint.f is None else scalar(extra.f, hint.f)))
    context = len(rows)
    rows += [row(coordinate(trunk.x, x), trunk.unknown) for x in Xq.unbind(1)]
    cells = torch.stack(rows, dim=1)  # b x r x c x E

    all_cells = torch.ones(d + 1, d + 1, dtype=torch.bool)
    context_only = (torch.arange(len(rows)) < context).expand(len(rows), -1)
    for layer in trunk.layers:
        assert isinstance(layer, Layer)
        cells = standardise(cells + full_attention(layer.cells, cells, all_cells))
        columns = cells.transpose(1, 2)
        columns = standardise(columns + full_attention(layer.rows, columns, context_only))
        cells = columns.transpose(1, 2)
        cells = standardise(cells + layer.mlp(cells))
    logits: Tensor = network.head(cells[:, context:, -1])
    return logits.log_softmax(-1)
