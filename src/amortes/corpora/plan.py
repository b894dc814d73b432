"""What a corpus of maximised paths holds, and how it is cut into shards.

A corpus is a folder with

    corpus.json                 this configuration: prior, seed, sizes, maximisers, plan
    shard-00000.safetensors     up to `shard_size` paths of one dimension (`amortes.corpora.shards`)
    ...

Everything in the folder is a pure function of the configuration.
"""

import dataclasses
import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from amortes.errors import ConfigError, FileError
from amortes.files import AnyPath, read_json
from amortes.prior.gp import GPPrior
from amortes.prior.newton import NewtonConfig
from amortes.prior.paths import NUM_FEATURES

FORMAT, VERSION = "amortes-corpus", 1
CONFIG_NAME = "corpus.json"


@dataclasses.dataclass(frozen=True)
class Shard:
    """One line of the plan: which shard holds how many paths of which dimension."""

    index: int
    d: int
    num_paths: int

    @property
    def filename(self) -> str:
        """Name of its file in the folder."""
        return f"shard-{self.index:05d}.safetensors"


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusConfig:
    """Everything the bytes of a corpus depend on. `dims`: those of the prior unless given."""

    prior: GPPrior
    num_paths: int
    dims: tuple[int, ...] = ()
    seed: int = 0
    shard_size: int = 4096
    num_features: int = NUM_FEATURES
    maximisers: tuple[NewtonConfig, ...] = ()  # one per dimension; the default ones unless given

    def __post_init__(self) -> None:
        dims = self.dims or tuple(range(self.prior.min_dim, self.prior.max_dim + 1))
        object.__setattr__(self, "dims", dims)
        for d in dims:
            self.prior.check_dim(d)
        if sorted(set(dims)) != list(dims):
            raise ConfigError(f"dims: must rise without repetition, not {dims}.")
        if self.num_paths < len(dims):
            raise ConfigError(
                f"num_paths: {self.num_paths} paths cannot cover {len(dims)} dimensions."
            )
        for field in ("shard_size", "num_features"):
            if getattr(self, field) < 1:
                raise ConfigError(f"{field}: must be positive, not {getattr(self, field)}.")
        if not 0 <= self.seed < 2**64:
            raise ConfigError(f"seed: must be in 0..2^64-1, not {self.seed}.")
        if not self.maximisers:
            default = tuple(NewtonConfig.for_dim(d) for d in dims)
            object.__setattr__(self, "maximisers", default)
        if len(self.maximisers) != len(dims):
            raise ConfigError(
                f"maximisers: need one per dimension ({len(dims)}), not {len(self.maximisers)}."
            )

    @cached_property
    def plan(self) -> tuple[Shard, ...]:
        """All shards. Dimensions take turns, so that the time left can be told from the start."""
        share, rest = divmod(self.num_paths, len(self.dims))
        left = {d: share + (k < rest) for k, d in enumerate(self.dims)}
        shards: list[Shard] = []
        while any(left.values()):
            for d in self.dims:
                if count := min(left[d], self.shard_size):
                    shards.append(Shard(len(shards), d, count))
                    left[d] -= count
        return tuple(shards)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the configuration; every shard carries it and so knows its corpus."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The content of corpus.json; `from_dict` inverts it."""
        pairs = zip(self.dims, self.maximisers, strict=True)
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"format": FORMAT, "version": VERSION, **fields} | {
            "prior": self.prior.to_dict(),
            "dims": list(self.dims),
            "maximisers": {str(d): dataclasses.asdict(maximiser) for d, maximiser in pairs},
            "plan": [shard.d for shard in self.plan],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Rebuild a configuration from `to_dict`; `ConfigError` for anything else."""
        try:
            if (values["format"], values["version"]) != (FORMAT, VERSION):
                raise ConfigError(
                    f"format {values['format']} {values['version']}, not {FORMAT} {VERSION}."
                )
            fields = {f.name: values[f.name] for f in dataclasses.fields(cls)}
            fields["prior"] = GPPrior.from_dict(values["prior"])
            fields["dims"] = tuple(values["dims"])
            fields["maximisers"] = tuple(
                NewtonConfig(**values["maximisers"][str(d)]) for d in values["dims"]
            )
            config = cls(**fields)
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"not the description of a corpus ({error!r}).") from error
        if config.to_dict() != values:
            raise ConfigError("not the description of a corpus (unknown entries).")
        return config


def read_config(folder: AnyPath) -> CorpusConfig:
    """The configuration of the corpus in `folder`, or a `FileError`."""
    path = Path(folder) / CONFIG_NAME
    try:
        return CorpusConfig.from_dict(read_json(path))
    except ConfigError as error:
        raise FileError(
            f"{path} does not describe a corpus this version can read: {error}"
        ) from error
