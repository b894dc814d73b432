import dataclasses
import multiprocessing
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from amortes.corpora.corpus import Corpus, Symmetry
from amortes.corpora.generate import generate
from amortes.corpora.plan import CorpusConfig
from amortes.corpora.shards import evaluate, read_shard
from amortes.engines import local_engine
from amortes.errors import ConfigError, DataError, FileError
from amortes.prior.gp import PRIORS, GPPrior, named_prior
from amortes.prior.kernels import covariance
from amortes.prior.newton import maximise_paths
from amortes.prior.paths import Paths
from amortes.prior.tasks import TaskConfig, TaskStream
from amortes.random import derive_seeds, generator

CONFIG = CorpusConfig(
    prior=named_prior("paper"), num_paths=91, dims=(1, 2), shard_size=16, num_features=50
)
SMALL = TaskConfig(batch_size=6, num_queries=8, max_context=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    generate(folder, CONFIG, engine=local_engine(1))
    return folder


def test_size_and_dimensions(folder: Path) -> None:
    corpus = Corpus.open(folder)
    assert (len(corpus), corpus.dims) == (91, (1, 2))
    assert (corpus.count(1), corpus.count(2)) == (46, 45)


def test_rows_are_those_of_the_shards_in_the_order_asked_for(folder: Path) -> None:
    corpus = Corpus.open(folder)
    shards = [shard for shard in CONFIG.plan if shard.d == 2]
    stored = [read_shard(folder, CONFIG, shard).arrays() for shard in shards]
    indices = np.array([44, 0, 17, 16, 15, 0, 33])
    rows = corpus.rows(2, indices).arrays()
    for name, column in rows.items():
        whole = np.concatenate([arrays[name] for arrays in stored])
        np.testing.assert_array_equal(column, whole[indices])
    places = [shard.index for shard in corpus.shards_of(2, indices)]
    assert places == [shards[i // 16].index for i in indices]


def test_draw_depends_on_the_generator_alone(folder: Path) -> None:
    def draw(seed: int) -> np.ndarray:
        return Corpus.open(folder).draw(1, 500, torch.Generator().manual_seed(seed)).seeds

    np.testing.assert_array_equal(draw(3), draw(3))
    assert not np.array_equal(draw(3), draw(4))
    assert len(np.unique(draw(3))) == 46  # 500 draws from 46 rows miss none


def test_a_drawn_path_has_the_stored_maximum_exactly(folder: Path) -> None:
    corpus = Corpus.open(folder)
    for d in corpus.dims:
        hyper, seeds, optimum = rows = corpus.draw(d, 20, torch.Generator().manual_seed(0))
        assert hyper.d == d
        assert seeds.dtype == np.uint64
        assert optimum.x.shape == (20, d)
        value = evaluate(corpus.paths(rows, torch.float64), optimum.x)
        assert torch.equal(value.float(), optimum.f)
        single = evaluate(corpus.paths(rows), optimum.x)
        assert single.dtype == torch.float32
        torch.testing.assert_close(single, optimum.f, atol=1e-5, rtol=0)


def test_other_processes_draw_the_same(folder: Path) -> None:
    corpus = Corpus.open(folder)
    here = _drawn_seeds(corpus)
    assert _drawn_seeds(pickle.loads(pickle.dumps(corpus))) == here
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(_drawn_seeds, [corpus, corpus]) == [here, here]


def _drawn_seeds(corpus: Corpus) -> list[int]:
    seeds: list[int] = corpus.draw(2, 5, torch.Generator().manual_seed(1)).seeds.tolist()
    return seeds


def test_what_is_not_there_is_named(folder: Path) -> None:
    corpus = Corpus.open(folder)
    with pytest.raises(DataError, match="d=3"):
        corpus.draw(3, 1, torch.Generator())
    for bad in ([45], [-1], []):
        with pytest.raises(DataError, match=r"0\.\.44"):
            corpus.rows(2, np.array(bad, dtype=int))


def test_opening_an_incomplete_corpus_tells_how_to_finish_it(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"corpus\.json does not exist"):
        Corpus.open(tmp_path)
    generate(tmp_path, CONFIG, engine=local_engine(1), only=[0])
    with pytest.raises(FileError, match=r"5 of 6 shards.*amortes prior generate"):
        Corpus.open(tmp_path)


def test_a_corpus_replaces_the_search(tmp_path: Path) -> None:
    prior = GPPrior(max_dim=2)
    config = CorpusConfig(prior=prior, num_paths=32, shard_size=16)
    generate(tmp_path, config, engine=local_engine(1))
    stream = TaskStream(prior, 7, SMALL, Corpus.open(tmp_path))
    task = stream.batch(0)
    assert torch.equal(task.fq, stream.batch(0).fq)
    assert not torch.equal(task.fq, TaskStream(prior, 8, SMALL, stream.corpus).batch(0).fq)
    assert (task.optimum.f[:, None] >= task.fq).all()
    other = dataclasses.replace(prior, noise_sd=PRIORS["robust"].noise_sd)
    message = (
        r"made from 'custom', not from 'custom'\. Differences: noise_sd\.loc: -4\.0 -> -3\.0; "
    )
    with pytest.raises(ConfigError, match=message):
        TaskStream(other, 7, SMALL, Corpus.open(tmp_path))


@pytest.mark.parametrize(("dims", "last"), [((1, 2), 2), ((1, 4), 1)])
def test_a_corpus_has_all_dimensions_of_the_prior(
    tmp_path: Path, dims: tuple[int, ...], last: int
) -> None:
    config = CorpusConfig(prior=PRIORS["paper"], dims=dims, num_paths=8)
    generate(tmp_path, config, engine=local_engine(1))
    corpus = Corpus.open(tmp_path)
    message = rf"d in 1\.\.6\. .*--set prior.min_dim=1 --set prior.max_dim={last}\."
    with pytest.raises(ConfigError, match=message):
        TaskStream(PRIORS["paper"], 7, SMALL, corpus)
    smaller = dataclasses.replace(PRIORS["paper"], name="custom", max_dim=last)
    stream = TaskStream(smaller, 7, SMALL, corpus)
    assert {stream.batch(step).X.shape[2] for step in range(6)} == set(range(1, last + 1))


@pytest.mark.parametrize("name", ["paper", "real"])
def test_paths_points_and_hyperparameters_move_together(name: str) -> None:
    seeds = derive_seeds(31, count=8)
    prior = PRIORS[name]
    hyper = prior.sample(seeds, 4)
    paths = Paths.sample(prior.kernel, hyper, seeds, dtype=torch.float64)
    symmetry = Symmetry.random(8, 4, generator(0))
    moved = symmetry.paths(paths)
    x = torch.rand(8, 4, generator=generator(1), dtype=torch.float64)
    assert torch.allclose(moved(symmetry.points(x)[:, None]), paths(x[:, None]), atol=1e-10)
    optimum = maximise_paths(paths)
    assert torch.allclose(moved(symmetry.points(optimum.x)[:, None])[:, 0], optimum.f, atol=1e-9)
    after = symmetry.hyperparameters(hyper)
    if name == "paper":
        # The same path drawn under the moved lengthscales has features with the moved scales.
        scale = moved.frequencies.std(1) * after.lengthscale
        assert torch.allclose(scale, torch.ones_like(scale), atol=0.15)
    # Covariances of moved points are those of the points before.
    X = torch.rand(8, 5, 4, generator=generator(2), dtype=torch.float64)
    there = torch.stack([symmetry.points(X[:, i]) for i in range(5)], dim=1)
    before = covariance(prior.kernel, hyper, X, X)
    assert torch.allclose(covariance(prior.kernel, after, there, there), before, atol=1e-9)


def test_symmetries_are_uniform() -> None:
    symmetry = Symmetry.random(3000, 3, generator(2))
    assert torch.equal(symmetry.order.sort(1).values, torch.arange(3).expand(3000, 3))
    first = torch.bincount(symmetry.order[:, 0], minlength=3) / 3000
    assert (first - 1 / 3).abs().max() < 0.05
    assert abs(symmetry.mirror.double().mean() - 0.5) < 0.03
