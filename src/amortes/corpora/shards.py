"""One shard of a corpus: paths of one dimension, their seeds and their maxima.

Features are not stored. A row is the hyperparameters, the seed of the path, its maximiser x* and
its maximum f*: 24 + 8 d bytes, from which `sample_paths` rebuilds the very same function.

A shard is a pure function of the configuration and its index: seeds come from (seed, index),
hyperparameters are rounded to float32 before the path is drawn, and the header has no date and no
host. Making a shard again gives the same bytes, whatever was lost and whoever makes it.
"""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from torch import Tensor

import amortes
from amortes.corpora.plan import FORMAT, VERSION, CorpusConfig, Shard
from amortes.errors import FileError
from amortes.files import AnyPath, atomic_path
from amortes.prior.gp import Hyperparameters
from amortes.prior.newton import NewtonConfig, Optimum, maximise_paths
from amortes.prior.paths import Paths
from amortes.random import derive_seeds
from amortes.threads import single_thread

HYPERPARAMETERS = tuple(field.name for field in dataclasses.fields(Hyperparameters))
BLOCK = 256  # paths made at once: bounds the memory of a worker whatever the size of a shard


class Rows(NamedTuple):
    """Maximised paths: all that is needed to rebuild n functions, and their maxima."""

    hyper: Hyperparameters  # float32, batch shape n
    seeds: np.ndarray  # n, uint64
    optimum: Optimum  # float32

    def take(self, indices: np.ndarray) -> "Rows":
        """The rows with these indices, in their order."""
        i = torch.from_numpy(indices)
        optimum = Optimum(self.optimum.x[i], self.optimum.f[i])
        return Rows(self.hyper[i], self.seeds[indices], optimum)

    def arrays(self) -> dict[str, np.ndarray]:
        """The columns, by the names they have on disk."""
        columns = self.hyper.tensors() | {"x_opt": self.optimum.x, "f_opt": self.optimum.f}
        arrays = {name: tensor.contiguous().numpy() for name, tensor in columns.items()}
        return arrays | {"path_seed": np.ascontiguousarray(self.seeds)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """The inverse of `arrays`."""
        tensor = {name: torch.from_numpy(a) for name, a in arrays.items() if name != "path_seed"}
        hyper = Hyperparameters(**{n: t for n, t in tensor.items() if n in HYPERPARAMETERS})
        return cls(hyper, arrays["path_seed"], Optimum(tensor["x_opt"], tensor["f_opt"]))

    @classmethod
    def concatenate(cls, parts: Sequence["Rows"]) -> Self:
        """All rows of `parts`, one part after the other."""
        columns = [part.arrays() for part in parts]
        return cls.from_arrays({k: np.concatenate([c[k] for c in columns]) for k in columns[0]})


def make_shard(config: CorpusConfig, index: int) -> bytes:
    """Draw and maximise the paths of one shard; returns the bytes of its file."""
    shard = config.plan[index]
    maximiser = config.maximisers[config.dims.index(shard.d)]
    parts = []
    with single_thread():
        hyper, seeds = drawn_from_seed(config, shard)
        for start in range(0, shard.num_paths, BLOCK):
            block = slice(start, start + BLOCK)
            paths = sample_paths(config, hyper[block], seeds[block])
            parts.append(Rows(hyper[block], seeds[block], maximum(paths, maximiser)))
    tensors = Rows.concatenate(parts).arrays()
    about = {
        "format": FORMAT,
        "version": VERSION,
        "corpus": config.digest,
        "index": index,
        "made_with": {
            "amortes": amortes.__version__,
            "torch": str(torch.__version__),
            "numpy": np.__version__,
        },
    }
    about["checksum"] = _checksum(about, tensors)
    # One entry only: safetensors writes several in random order.
    return save(tensors, metadata={"amortes": json.dumps(about, sort_keys=True)})


def drawn_from_seed(config: CorpusConfig, shard: Shard) -> tuple[Hyperparameters, np.ndarray]:
    """Hyperparameters (float32) and path seeds (uint64) of a shard, from its index alone."""
    seeds = derive_seeds(config.seed, shard.index, count=2 * shard.num_paths).reshape(-1, 2)
    return config.prior.sample(seeds[:, 0], shard.d).to(torch.float32), seeds[:, 1]


def sample_paths(
    config: CorpusConfig,
    hyper: Hyperparameters,
    seeds: np.ndarray,
    dtype: torch.dtype = torch.float64,
) -> Paths:
    """The functions behind rows."""
    return Paths.sample(
        config.prior.kernel, hyper, seeds, num_features=config.num_features, dtype=dtype
    )


def maximum(paths: Paths, maximiser: NewtonConfig) -> Optimum:
    """The float32 maxima of float64 paths: found in float32, then evaluated in float64.

    The last bits of a value depend on how paths are batched. Those of a float64 value are gone
    once it is rounded, so whoever evaluates the path at x* in float64 finds f* bit for bit.
    """
    x = maximise_paths(paths.to(torch.float32), maximiser).x
    return Optimum(x, evaluate(paths, x).to(torch.float32))


def evaluate(paths: Paths, x: Tensor) -> Tensor:
    """Value of each path at its own point: `b x d` -> `b`, in the dtype of the paths."""
    return paths(x.to(paths.dtype)[:, None]).squeeze(1)


def write_shard(folder: AnyPath, shard: Shard, data: bytes) -> None:
    """Write the bytes of a shard; whole or not at all."""
    with atomic_path(Path(folder) / shard.filename) as temporary:
        temporary.write_bytes(data)


def read_shard(folder: AnyPath, config: CorpusConfig, shard: Shard) -> Rows:
    """Read and check one shard; a `FileError` says what is wrong with it."""
    path = Path(folder) / shard.filename
    try:
        with safe_open(path, framework="np") as file:
            about = json.loads((file.metadata() or {})["amortes"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        checksum = about.pop("checksum")
        found = [about[key] for key in ("format", "version", "corpus", "index")]
    except FileNotFoundError:
        raise FileError(f"{path} is missing.") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error}).") from error
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{path} is damaged, or not a shard of a corpus ({error!r}).") from error
    if found != [FORMAT, VERSION, config.digest, shard.index]:
        raise FileError(f"{path} belongs to another corpus or another place in this one.")
    if {n: (a.dtype, a.shape) for n, a in tensors.items()} != _layout(config, shard):
        raise FileError(f"{path} is damaged: its tensors have other names, types or shapes.")
    if checksum != _checksum(about, tensors):
        raise FileError(f"{path} is damaged: its checksum does not match.")
    return Rows.from_arrays(tensors)


def _layout(config: CorpusConfig, shard: Shard) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Name, type and shape of every tensor of a shard."""
    n, f4 = shard.num_paths, np.dtype(np.float32)
    hyper = config.prior.sample(np.zeros(1, dtype=np.uint64), shard.d).tensors()
    return {name: (f4, (n, *t.shape[1:])) for name, t in hyper.items()} | {
        "path_seed": (np.dtype(np.uint64), (n,)),
        "x_opt": (f4, (n, shard.d)),
        "f_opt": (f4, (n,)),
    }


def _checksum(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()
