import dataclasses
import errno
import fcntl
import os
import resource
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from amortes.corpora.generate import generate
from amortes.corpora.plan import CorpusConfig
from amortes.engines import Made, Task, local_engine
from amortes.errors import ConfigError, FileError
from amortes.prior.gp import Marginal, named_prior
from amortes.prior.newton import NewtonConfig

CONFIG = CorpusConfig(
    prior=named_prior("paper"), num_paths=64, dims=(1, 2), shard_size=8, num_features=20
)
HERE = local_engine(1)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("undisturbed")
    generate(folder, CONFIG, engine=HERE)
    return content(folder)


def backwards(task: Task, indices: Sequence[int]) -> Generator[Made, None, None]:
    yield from map(task, reversed(indices))


def interrupted_after(count: int) -> Any:
    def engine(task: Task, indices: Sequence[int]) -> Generator[Made, None, None]:
        yield from map(task, indices[:count])
        raise KeyboardInterrupt

    return engine


def test_summary_and_progress(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    heard: list[tuple[int, int]] = []
    summary = generate(
        tmp_path / "new" / "folder",
        CONFIG,
        engine=backwards,
        progress=lambda done, total: heard.append((done, total)),
    )
    assert heard == [(done, 64) for done in range(0, 65, 8)]
    assert (summary.made_shards, summary.made_paths, summary.num_paths) == (8, 64, 64)
    assert (summary.replaced_shards, summary.num_bytes) == (0, sum(map(len, undisturbed.values())))
    assert content(tmp_path / "new" / "folder") == undisturbed


def test_an_interrupted_run_goes_on(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    with pytest.raises(KeyboardInterrupt):
        generate(tmp_path, CONFIG, engine=interrupted_after(3))
    # What a kill between creating and renaming leaves behind.
    (tmp_path / ".shard-00004.safetensors.abc.tmp").write_bytes(b"half")
    (tmp_path / ".corpus.json.xyz.tmp").write_bytes(b"half")
    heard: list[int] = []
    summary = generate(
        tmp_path, CONFIG, engine=HERE, progress=lambda done, total: heard.append(done)
    )
    assert heard[0] == 24
    assert (summary.made_shards, summary.num_paths) == (5, 64)
    assert content(tmp_path) == undisturbed
    assert generate(tmp_path, CONFIG, engine=interrupted_after(0)).made_paths == 0


def test_damaged_shards_are_replaced(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    for name, data in undisturbed.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "shard-00002.safetensors").write_bytes(b"something else")
    (tmp_path / "shard-00005.safetensors").unlink()
    summary = generate(tmp_path, CONFIG, engine=HERE)
    assert (summary.made_shards, summary.replaced_shards) == (2, 1)
    assert content(tmp_path) == undisturbed


def test_only_touches_nothing_else(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    summary = generate(tmp_path, CONFIG, engine=HERE, only=[6, 1, 6])
    assert (summary.made_shards, summary.num_paths) == (2, 16)
    names = {"corpus.json", "shard-00001.safetensors", "shard-00006.safetensors"}
    assert content(tmp_path) == {name: undisturbed[name] for name in names}
    with pytest.raises(ConfigError, match=r"0\.\.7, no shard 8"):
        generate(tmp_path, CONFIG, engine=HERE, only=[1, 8])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 7}, "seed: has 0, asked for 7"),
        ({"num_paths": 65}, "num_paths: has 64, asked for 65"),
        (
            {"dims": (1, 2, 3), "maximisers": ()},
            r"another corpus: dims: has \[1, 2\], asked for \[1, 2, 3\]\. ",
        ),
        (
            {"maximisers": (NewtonConfig(), NewtonConfig(num_points=99))},
            r"maximisers\.2\.num_points: has 512, asked for 99",
        ),
        (
            {"prior": dataclasses.replace(CONFIG.prior, mean=Marginal.normal(0.0, 0.25))},
            r"prior\.mean\.scale: has 0\.5, asked for 0\.25",
        ),
    ],
)
def test_another_configuration_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    generate(tmp_path, CONFIG, engine=HERE, only=[0])
    before = content(tmp_path)
    with pytest.raises(ConfigError, match=message):
        generate(tmp_path, dataclasses.replace(CONFIG, **change), engine=HERE)
    assert content(tmp_path) == before


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    (tmp_path / ".notes.tmp").write_text("precious too")
    with pytest.raises(FileError, match="not empty"):
        generate(tmp_path, CONFIG, engine=HERE)
    assert sorted(content(tmp_path)) == [".notes.tmp", "thesis.tex"]
    with pytest.raises(FileError, match="Cannot write"):
        generate(tmp_path / "thesis.tex", CONFIG, engine=HERE)


def test_a_second_run_is_kept_out(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(FileError, match="another run"):
        generate(tmp_path, CONFIG, engine=HERE)
    os.close(handle)
    generate(tmp_path, CONFIG, engine=HERE, only=[0])


def test_a_full_disk_is_explained_and_leaves_whole_shards(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    sizes = [len(undisturbed[shard.filename]) for shard in CONFIG.plan]
    assert sizes[0] < sizes[1]  # d = 1 fits below the limit, d = 2 does not
    closed: list[bool] = []

    def engine(task: Task, indices: Sequence[int]) -> Generator[Made, None, None]:
        try:
            yield from map(task, indices)
        finally:
            closed.append(True)

    generate(tmp_path, CONFIG, engine=HERE, only=[])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (sizes[0], limits[1]))
        with pytest.raises(FileError, match=os.strerror(errno.EFBIG)):
            generate(tmp_path, CONFIG, engine=engine)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert closed == [True]
    assert sorted(content(tmp_path)) == ["corpus.json", "shard-00000.safetensors"]
    generate(tmp_path, CONFIG, engine=HERE)
    assert content(tmp_path) == undisturbed
