"""Predictions and gains of each shipped network on fixed data, to notice when they drift.

`python -m tests.pretrained.golden` writes them anew, after weights were replaced on purpose.
"""

import json
import math
from pathlib import Path

import torch
from torch import Tensor

from amortes.nets.base import Hint
from amortes.pretrained import load_pretrained, names

FILE = Path(__file__).with_name("golden.json")
Golden = dict[str, dict[str, list[list[float]]]]


def data(d: int, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """n points of a wavy function, and five queries; no random numbers."""
    i = torch.arange((n + 5) * d, dtype=torch.float64).reshape(n + 5, d)
    points = (i * math.sqrt(2.0) + i.square() * math.sqrt(3.0)) % 1.0
    X, Xq = points[:n], points[n:]
    y = (5.0 * X).sin().mean(1) + 0.1 * (40.0 * X).cos().mean(1)
    return X[None], y[None], Xq[None]


@torch.no_grad()
def compute(name: str) -> dict[str, list[list[float]]]:
    """Mean and sd without a hint and with both, and the three gains, at each query."""
    network, _ = load_pretrained(name)
    result = {}
    for d, n in ((1, 4), (3, 12), (6, 40)):
        if not network.prior.min_dim <= d <= network.prior.max_dim:
            continue
        X, y, Xq = data(d, n)
        state = network.condition(X, y)
        best = y.argmax()
        told = network.predict(state, Xq, Hint(X[:, best], y[:, best] + 0.1))
        plain = network.predict(state, Xq)
        columns = [plain.mean, plain.variance.sqrt(), told.mean, told.variance.sqrt()]
        gains = network.gain(state, Xq).mean
        rows = torch.cat([torch.stack(columns, -1), gains], dim=-1)[0]
        result[f"d={d} n={n}"] = [[float(f"{v:.6g}") for v in row] for row in rows.tolist()]
    return result


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: compute(name) for name in names()}, indent=1) + "\n")
