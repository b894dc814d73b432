"""Reading a corpus: random maximised paths, under random symmetries of the cube.

Rows are drawn uniformly over all paths of one dimension. Shards are read, and checked, when first
needed, and the last few hundred stay in memory.

To mirror and reorder the axes leaves the distribution of functions unchanged, so every stored path
with a known maximum stands for 2^d d! of them. The map must be applied to the path, its maximiser
and its lengthscales alike; points drawn afterwards live in the new coordinates.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from amortes.corpora.plan import CorpusConfig, Shard, read_config
from amortes.corpora.shards import Rows, read_shard, sample_paths
from amortes.errors import ConfigError, DataError, FileError, differences
from amortes.files import AnyPath
from amortes.prior.gp import GPPrior, Hyperparameters
from amortes.prior.newton import Optimum
from amortes.prior.paths import Paths
from amortes.prior.warp import mirrored

CACHED_SHARDS = 256  # of 4096 paths each: about 50 MB, all of a corpus of a million


@dataclasses.dataclass(frozen=True)
class Symmetry:
    """New coordinates x'_k = x_{order_k}, then 1 - x'_k where mirrored; one map per path."""

    order: Tensor  # b x d, a permutation of 0..d-1
    mirror: Tensor  # b x d, bool

    @classmethod
    def random(cls, b: int, d: int, rng: torch.Generator) -> "Symmetry":
        """One uniformly random symmetry of the cube for each of b paths."""
        key, coin = (torch.rand(b, d, generator=rng, dtype=torch.float32) for _ in range(2))
        return cls(key.argsort(dim=1), coin < 0.5)

    def points(self, x: Tensor) -> Tensor:
        """Map points `b x d` to the new coordinates."""
        moved = x.gather(1, self.order)
        return torch.where(self.mirror, 1.0 - moved, moved)

    def paths(self, paths: Paths) -> Paths:
        """The functions g with g(points(x)) = f(x)."""
        return paths.permuted(self.order).reflected(self.mirror)

    def hyperparameters(self, hyper: Hyperparameters) -> Hyperparameters:
        """Hyperparameters of the mapped functions: lengthscales and warps follow their axes."""
        warp = hyper.warp
        if warp is not None:
            warp = mirrored(warp.gather(2, self.order[:, None].expand(-1, 2, -1)), self.mirror)
        return dataclasses.replace(
            hyper, lengthscale=hyper.lengthscale.gather(1, self.order), warp=warp
        )


class Corpus:
    """A corpus opened for reading. Holds no open files, and can be sent to other processes."""

    def __init__(self, folder: Path, config: CorpusConfig, shards: Sequence[Shard]) -> None:
        self.folder = folder
        self.config = config
        self.shards = tuple(shards)
        self._shards = {d: [s for s in shards if s.d == d] for d in config.dims}
        self._ends = {d: np.cumsum([s.num_paths for s in v]) for d, v in self._shards.items()}
        self._read = lru_cache(CACHED_SHARDS)(lambda shard: read_shard(folder, config, shard))

    @classmethod
    def open(cls, folder: AnyPath) -> Self:
        """Open a corpus with all its shards; an incomplete one is a `FileError`."""
        folder = Path(folder)
        config = read_config(folder)
        missing = [s.filename for s in config.plan if not (folder / s.filename).exists()]
        if missing:
            raise FileError(
                f"{folder}: {len(missing)} of {len(config.plan)} shards are missing, the first is "
                f"{missing[0]}. Finish the corpus with `amortes prior generate {folder}`."
            )
        return cls(folder, config, config.plan)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.folder, self.config, self.shards)

    @property
    def dims(self) -> tuple[int, ...]:
        """Dimensions there are paths of."""
        return tuple(d for d, shards in self._shards.items() if shards)

    def __len__(self) -> int:
        return sum(self.count(d) for d in self.dims)

    def count(self, d: int) -> int:
        """Number of paths of dimension `d`."""
        if d not in self.dims:
            raise DataError(f"d={d}: {self.folder} has paths of d in {self.dims} only.")
        return int(self._ends[d][-1])

    def draw(self, d: int, count: int, generator: torch.Generator) -> Rows:
        """`count` random rows of dimension `d`, with replacement."""
        return self.rows(d, torch.randint(self.count(d), (count,), generator=generator).numpy())

    def draw_paths(
        self, d: int, count: int, rng: torch.Generator
    ) -> tuple[Hyperparameters, Paths, Optimum]:
        """`count` random paths of dimension `d`, each under a random symmetry of the cube."""
        rows, symmetry = self.draw(d, count, rng), Symmetry.random(count, d, rng)
        return (
            symmetry.hyperparameters(rows.hyper.to(torch.float64)),
            symmetry.paths(self.paths(rows)),
            Optimum(symmetry.points(rows.optimum.x), rows.optimum.f),
        )

    def require(self, prior: GPPrior) -> None:
        """Raise `ConfigError` unless there are paths of the prior, in all of its dimensions."""
        theirs, dims = self.config.prior, self.dims
        ours = dataclasses.replace(
            prior, name=theirs.name, min_dim=theirs.min_dim, max_dim=theirs.max_dim
        )
        if ours != theirs:
            lines = differences(theirs.to_dict(), ours.to_dict())
            raise ConfigError(
                f"corpus: made from {theirs.name!r}, not from {prior.name!r}. "
                f"Differences: {'; '.join(lines)}."
            )
        if not set(range(prior.min_dim, prior.max_dim + 1)) <= set(dims):
            last = next(d for d in itertools.count(dims[0]) if d + 1 not in dims)
            raise ConfigError(
                f"corpus: has paths of d in {dims} only, but {prior.name!r} covers d in "
                f"{prior.min_dim}..{prior.max_dim}. Use a corpus of all of these, or a smaller "
                f"prior: --set prior.min_dim={dims[0]} --set prior.max_dim={last}."
            )

    def rows(self, d: int, indices: np.ndarray) -> Rows:
        """The rows of dimension `d` with these indices in 0..count(d) - 1, in their order."""
        places = self._places(d, indices)
        parts = []
        for place in np.unique(places):
            shard = self._shards[d][place]
            start = self._ends[d][place] - shard.num_paths
            parts.append(self._read(shard).take(indices[places == place] - start))
        by_shard = np.argsort(places, kind="stable")
        return Rows.concatenate(parts).take(np.argsort(by_shard))

    def shards_of(self, d: int, indices: np.ndarray) -> list[Shard]:
        """The shard of each row of dimension `d` with these indices."""
        return [self._shards[d][place] for place in self._places(d, indices)]

    def paths(self, rows: Rows, dtype: torch.dtype = torch.float32) -> Paths:
        """The functions behind these rows."""
        return sample_paths(self.config, rows.hyper, rows.seeds, dtype)

    def _places(self, d: int, indices: np.ndarray) -> np.ndarray:
        """Position, among the shards of dimension `d`, of the shard of each row."""
        if not (len(indices) and 0 <= indices.min() <= indices.max() < self.count(d)):
            raise DataError(f"indices: for d={d}, need one or more in 0..{self.count(d) - 1}.")
        return np.searchsorted(self._ends[d], indices, side="right")
