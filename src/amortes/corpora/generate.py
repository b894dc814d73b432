"""Making a corpus: one writer, any engine, any number of restarts.

Engines compute shards and hand their bytes to the process that called `generate`, which alone
writes to the folder. A shard is written atomically and depends on nothing but the configuration,
so a run that was stopped, however rudely, goes on where it was and ends with the very bytes of an
undisturbed one.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from amortes.corpora.plan import CONFIG_NAME, CorpusConfig, Shard, read_config
from amortes.corpora.shards import make_shard, read_shard, write_shard
from amortes.engines import Engine, Made
from amortes.errors import AmortesError, ConfigError, FileError, differences
from amortes.files import AnyPath, clear_stale, locked, write_json


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What `generate` made, and what is in the folder now."""

    made_shards: int
    made_paths: int
    replaced_shards: int  # those of the made ones that were there, but damaged or asked for
    seconds: float
    num_paths: int
    num_bytes: int


def generate(
    folder: AnyPath,
    config: CorpusConfig,
    *,
    engine: Engine,
    only: Sequence[int] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Summary:
    """Make all shards that are missing or damaged; or just those in `only`, whatever they are.

    `progress(done, total)` hears numbers of paths, once at the start and after every shard.
    """
    begin = time.perf_counter()
    folder = Path(folder)
    with _explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, "run"):
        with _explained(folder):
            _prepare(folder, config)
        wanted = config.plan if only is None else [_shard(config, i) for i in sorted(set(only))]
        todo = [s for s in wanted if only is not None or not _is_good(folder, config, s)]
        replaced = sum((folder / shard.filename).exists() for shard in todo)
        total = _num_paths(wanted)
        done = total - _num_paths(todo)
        progress(done, total)
        if todo:
            task = partial(_make, config)
            # Closing the generator stops the workers, whatever goes wrong here.
            with contextlib.closing(engine(task, [shard.index for shard in todo])) as results:
                for index, data in results:
                    with _explained(folder):
                        write_shard(folder, config.plan[index], data)
                    done += config.plan[index].num_paths
                    progress(done, total)
    present = [shard for shard in config.plan if (folder / shard.filename).exists()]
    names = [CONFIG_NAME, *(shard.filename for shard in present)]
    return Summary(
        made_shards=len(todo),
        made_paths=_num_paths(todo),
        replaced_shards=replaced,
        seconds=time.perf_counter() - begin,
        num_paths=_num_paths(present),
        num_bytes=sum((folder / name).stat().st_size for name in names),
    )


def _make(config: CorpusConfig, index: int) -> Made:
    return index, make_shard(config, index)


def _prepare(folder: Path, config: CorpusConfig) -> None:
    """Clear what killed runs left; write corpus.json, or see that it is the same."""
    clear_stale(folder, CONFIG_NAME, "shard-*.safetensors")
    if (folder / CONFIG_NAME).exists():
        _check_same(folder, read_config(folder), config)
    elif any(folder.iterdir()):
        raise FileError(
            f"{folder} is not empty and has no {CONFIG_NAME}. Choose a new folder for the corpus."
        )
    else:
        write_json(folder / CONFIG_NAME, config.to_dict())


def _check_same(folder: Path, stored: CorpusConfig, asked: CorpusConfig) -> None:
    if stored == asked:
        return
    # What follows from other fields is no news.
    derived = {"plan"} if stored.dims == asked.dims else {"plan", "maximisers"}
    first, second = (
        {name: value for name, value in config.to_dict().items() if name not in derived}
        for config in (stored, asked)
    )
    lines = differences(first, second, "{}: has {}, asked for {}")
    raise ConfigError(
        f"{folder} holds another corpus: {'; '.join(lines)}. "
        "Choose another folder, or ask for the same."
    )


def _shard(config: CorpusConfig, index: int) -> Shard:
    if not 0 <= index < len(config.plan):
        raise ConfigError(f"only: there are shards 0..{len(config.plan) - 1}, no shard {index}.")
    return config.plan[index]


def _num_paths(shards: Sequence[Shard]) -> int:
    return sum(shard.num_paths for shard in shards)


def _is_good(folder: Path, config: CorpusConfig, shard: Shard) -> bool:
    try:
        read_shard(folder, config, shard)
    except FileError:
        return False
    return True


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Turn what the system says about writing (disk full, no permission) into a `FileError`."""
    try:
        yield
    except AmortesError:
        raise
    except OSError as error:
        raise FileError(
            f"Cannot write to {folder}: {error.strerror or error}. Once that is put right, start "
            "the same command again; finished shards are kept."
        ) from error
