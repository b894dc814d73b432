from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save

from amortes.corpora.plan import CorpusConfig
from amortes.corpora.shards import (
    BLOCK,
    Rows,
    drawn_from_seed,
    evaluate,
    make_shard,
    read_shard,
    write_shard,
)
from amortes.errors import FileError
from amortes.prior.gp import named_prior
from amortes.prior.newton import NewtonConfig, maximise_paths
from amortes.prior.paths import Paths

CONFIG = CorpusConfig(
    prior=named_prior("paper"), num_paths=80, dims=(1, 2), shard_size=20, num_features=50
)
SHARD = CONFIG.plan[1]  # d = 2


@pytest.fixture(scope="module")
def content() -> bytes:
    return make_shard(CONFIG, SHARD.index)


def test_the_same_bytes_whatever_the_number_of_threads(content: bytes) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert make_shard(CONFIG, SHARD.index) == content
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("prior", ["robust", "real"])
def test_shards_of_every_prior_are_read_as_written(prior: str, tmp_path: Path) -> None:
    config = CorpusConfig(prior=named_prior(prior), num_paths=6, dims=(2,), num_features=20)
    write_shard(tmp_path, config.plan[0], make_shard(config, 0))
    read = read_shard(tmp_path, config, config.plan[0]).hyper.tensors()
    drawn = drawn_from_seed(config, config.plan[0])[0].tensors()
    assert read.keys() == drawn.keys()
    assert all(torch.equal(read[name], drawn[name]) for name in drawn)


def test_no_two_shards_hold_the_same_path() -> None:
    seeds = np.concatenate([drawn_from_seed(CONFIG, shard)[1] for shard in CONFIG.plan])
    assert len(np.unique(seeds)) == CONFIG.num_paths


def test_stored_rows_rebuild_the_function_and_its_maximum(tmp_path: Path, content: bytes) -> None:
    write_shard(tmp_path, SHARD, content)
    rows = read_shard(tmp_path, CONFIG, SHARD)
    for i in range(SHARD.num_paths):  # one by one: no batch of the original is repeated
        path = Paths.sample(
            "se",
            rows.hyper[i : i + 1],
            rows.seeds[i : i + 1],
            num_features=50,
            dtype=torch.float64,
        )
        value = evaluate(path, rows.optimum.x[i : i + 1]).float()
        assert torch.equal(value, rows.optimum.f[i : i + 1])
        grid = torch.linspace(0, 1, 101, dtype=torch.float64)
        X = torch.cartesian_prod(grid, grid)[None]
        assert path(X).max() <= value.double() + 1e-6
        searched = maximise_paths(path, NewtonConfig.for_dim(2, budget=4))
        torch.testing.assert_close(searched.f.float(), value, atol=1e-5, rtol=0)


def test_blocks_do_not_change_rows() -> None:
    config = CorpusConfig(
        prior=named_prior("paper"), num_paths=BLOCK + 9, dims=(1,), num_features=16
    )
    columns = load(make_shard(config, 0))
    hyper, seeds = drawn_from_seed(config, config.plan[0])
    np.testing.assert_array_equal(columns["path_seed"], seeds)
    np.testing.assert_array_equal(columns["lengthscale"], hyper.lengthscale.numpy())
    paths = Paths.sample("se", hyper, seeds, num_features=16, dtype=torch.float64)
    values = evaluate(paths, torch.from_numpy(columns["x_opt"])).float()
    np.testing.assert_array_equal(values.numpy(), columns["f_opt"])


def test_size_is_what_the_columns_need(content: bytes) -> None:
    assert len(content) - 1000 < SHARD.num_paths * (24 + 8 * SHARD.d) < len(content)


def test_take_and_concatenate(tmp_path: Path, content: bytes) -> None:
    write_shard(tmp_path, SHARD, content)
    rows = read_shard(tmp_path, CONFIG, SHARD)
    halves = [rows.take(np.arange(10)), rows.take(np.arange(10, 20))]
    again = Rows.concatenate(halves)
    for name, column in rows.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], column)
        np.testing.assert_array_equal(rows.take(np.array([7, 3])).arrays()[name], column[[7, 3]])


def test_any_flipped_byte_is_noticed(tmp_path: Path, content: bytes) -> None:
    header = 8 + int.from_bytes(content[:8], "little")
    for position in (*range(0, header, 7), *range(header, len(content), 53), len(content) - 1):
        damaged = bytearray(content)
        damaged[position] ^= 0x55
        write_shard(tmp_path, SHARD, bytes(damaged))
        with pytest.raises(FileError, match=SHARD.filename):
            read_shard(tmp_path, CONFIG, SHARD)


@pytest.mark.parametrize("length", [0, 4, 100, -1])
def test_a_truncated_file_is_noticed(tmp_path: Path, content: bytes, length: int) -> None:
    write_shard(tmp_path, SHARD, content[:length])
    with pytest.raises(FileError, match=SHARD.filename):
        read_shard(tmp_path, CONFIG, SHARD)


@pytest.mark.parametrize("metadata", [None, {"amortes": "{}"}, {"amortes": "[]"}, {"other": ""}])
def test_a_foreign_file_is_noticed(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    write_shard(tmp_path, SHARD, save({"weights": np.zeros(3)}, metadata=metadata))
    with pytest.raises(FileError, match="not a shard"):
        read_shard(tmp_path, CONFIG, SHARD)
    write_shard(tmp_path, SHARD, b"hello")
    with pytest.raises(FileError, match="not a shard"):
        read_shard(tmp_path, CONFIG, SHARD)


def test_a_shard_of_another_corpus_or_place_is_noticed(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(FileError, match="missing"):
        read_shard(tmp_path, CONFIG, SHARD)
    write_shard(tmp_path, CONFIG.plan[3], content)
    with pytest.raises(FileError, match="another place"):
        read_shard(tmp_path, CONFIG, CONFIG.plan[3])
    other = CorpusConfig(
        prior=CONFIG.prior, num_paths=80, dims=(1, 2), shard_size=20, num_features=50, seed=1
    )
    write_shard(tmp_path, SHARD, make_shard(other, SHARD.index))
    with pytest.raises(FileError, match="another corpus"):
        read_shard(tmp_path, CONFIG, SHARD)
