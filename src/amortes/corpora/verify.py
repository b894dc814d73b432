"""Checking that a corpus is what it says it is.

Every shard is read whole: header, checksum, shapes, finite values, x* in the cube, and the
hyperparameters and seeds that its index stands for. Then a random sample of paths is rebuilt:

* f(x*) must be f*, or the shard counts as damaged;
* a search with `budget` times as many points and starts tells how often x* is the global maximum:
  the share of paths where it finds no value more than `TOLERANCE` above f*.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amortes.corpora.corpus import Corpus
from amortes.corpora.plan import CorpusConfig, Shard, read_config
from amortes.corpora.shards import Rows, drawn_from_seed, evaluate, maximum, read_shard
from amortes.errors import FileError
from amortes.files import AnyPath
from amortes.prior.newton import NewtonConfig
from amortes.random import generator

TOLERANCE = 1e-5  # a maximum is the maximum if nothing is found that much higher
# Logarithms and exponentials differ in the last bit between processors; seeds do not.
ROUNDING = 1e-6
BLOCK = 8  # paths searched at once: a budget of 30 holds 960 starts x 500 features for each


@dataclass(frozen=True, kw_only=True)
class Report:
    """Result of `verify`."""

    num_shards: int
    damaged: dict[int, str]  # index of the shard -> what is wrong with it
    dims: list[dict[str, Any]]
    """What the sample of each dimension showed: its paths in whole shards, how many were sampled,
    the share of their maxima within `TOLERANCE` of the larger search, and how far that came above
    f* at most; both are None if nothing was sampled."""


def verify(
    folder: AnyPath,
    *,
    sample: int = 200,
    budget: int = 30,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Report:
    """Check all shards, and `sample` paths spread over the dimensions.

    `progress(what, done, total)` hears of every shard and of every block of sampled paths.
    """
    folder = Path(folder)
    config = read_config(folder)
    damaged: dict[int, str] = {}
    for done, shard in enumerate(config.plan):
        progress("shards", done, len(config.plan))
        try:
            check_shard(config, shard, read_shard(folder, config, shard))
        except FileError as error:
            damaged[shard.index] = str(error)
    progress("shards", len(config.plan), len(config.plan))
    corpus = Corpus(folder, config, [s for s in config.plan if s.index not in damaged])
    dims = []
    for k, d in enumerate(corpus.dims):
        size = (sample + len(corpus.dims) - 1 - k) // len(corpus.dims)
        indices = torch.randint(corpus.count(d), (size,), generator=generator(d)).numpy()
        gaps = []
        for start in range(0, size, BLOCK):
            progress(f"paths, d={d}", start, size)
            gaps.append(_check_paths(corpus, d, indices[start : start + BLOCK], budget, damaged))
        gap = torch.cat(gaps) if gaps else torch.empty(0)
        progress(f"paths, d={d}", size, size)
        row = {
            "d": d,
            "paths": corpus.count(d),
            "sampled": size,
            "within_1e-5": (gap <= TOLERANCE).double().mean().item() if size else None,
            "largest_gap": gap.max().clamp_min(0.0).item() if size else None,
        }
        dims.append(row)
    return Report(num_shards=len(config.plan), damaged=damaged, dims=dims)


def check_shard(config: CorpusConfig, shard: Shard, rows: Rows) -> None:
    """Raise a `FileError` unless the rows are possible ones, and those of this shard."""
    for name, array in rows.arrays().items():
        if not np.isfinite(array).all():
            raise FileError(f"{shard.filename} is damaged: {name} has values that are not finite.")
    x = rows.optimum.x
    if not ((x >= 0) & (x <= 1)).all():
        raise FileError(f"{shard.filename} is damaged: x_opt leaves the unit cube.")
    hyper, seeds = drawn_from_seed(config, shard)
    found = rows.hyper.tensors()
    same = [
        name in found and torch.allclose(found[name], t, rtol=ROUNDING, atol=ROUNDING)
        for name, t in hyper.tensors().items()
    ]
    if not (np.array_equal(rows.seeds, seeds) and all(same)):
        raise FileError(f"{shard.filename} is damaged: its paths are not those of its seed.")


def _check_paths(
    corpus: Corpus, d: int, indices: np.ndarray, budget: int, damaged: dict[int, str]
) -> Tensor:
    """Gap of each path between a larger search and f*; enters shards of wrong f* in `damaged`."""
    rows = corpus.rows(d, indices)
    paths = corpus.paths(rows, torch.float64)
    error = (evaluate(paths, rows.optimum.x) - rows.optimum.f).abs()
    wrong = error > ROUNDING * (1.0 + rows.optimum.f.abs())
    for shard, is_wrong in zip(corpus.shards_of(d, indices), wrong.tolist(), strict=True):
        if is_wrong:
            damaged[shard.index] = f"{shard.filename} is damaged: f_opt is not the value at x_opt."
    return maximum(paths, NewtonConfig.for_dim(d, budget)).f - rows.optimum.f
