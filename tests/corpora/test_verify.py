import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from amortes.corpora import shards
from amortes.corpora.generate import generate
from amortes.corpora.plan import CorpusConfig
from amortes.corpora.verify import verify
from amortes.engines import local_engine
from amortes.errors import FileError
from amortes.prior.gp import named_prior
from amortes.prior.newton import NewtonConfig

CONFIG = CorpusConfig(
    prior=named_prior("paper"), num_paths=60, dims=(1, 2), shard_size=10, num_features=50
)
TARGET = CONFIG.plan[3]


@pytest.fixture
def folder(tmp_path: Path, whole: dict[str, bytes]) -> Path:
    for name, data in whole.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    generate(folder, CONFIG, engine=local_engine(1))
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def forge(folder: Path, **columns: Any) -> None:
    """Replace columns of the target shard and give it the right checksum."""
    path = folder / TARGET.filename
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    about = json.loads(header["__metadata__"]["amortes"])
    del about["checksum"]
    tensors = load(data)
    for name, change in columns.items():
        tensors[name] = change(tensors[name].copy())
    about["checksum"] = shards._checksum(about, tensors)
    path.write_bytes(save(tensors, metadata={"amortes": json.dumps(about)}))
    shards.read_shard(folder, CONFIG, TARGET)  # the forgery passes for whole


def test_a_whole_corpus(folder: Path) -> None:
    heard = []
    report = verify(folder, sample=11, budget=4, progress=lambda *message: heard.append(message))
    assert (report.num_shards, report.damaged) == (6, {})
    assert [(row["d"], row["paths"], row["sampled"]) for row in report.dims] == [
        (1, 30, 6),
        (2, 30, 5),
    ]
    for row in report.dims:
        assert row["within_1e-5"] == 1.0
        assert row["largest_gap"] is not None
        assert 0 <= row["largest_gap"] < 1e-5
    assert heard[0] == ("shards", 0, 6)
    assert heard[-1] == ("paths, d=2", 5, 5)


def test_without_a_sample(folder: Path) -> None:
    report = verify(folder, sample=0)
    assert [
        (row["sampled"], row["within_1e-5"], row["largest_gap"]) for row in report.dims
    ] == 2 * [(0, None, None)]


def test_poor_maxima_are_reported(tmp_path: Path) -> None:
    poor = NewtonConfig(
        num_points=1, coarse_starts=1, coarse_steps=1, fine_starts=1, fine_steps=1, survivors=1
    )
    config = dataclasses.replace(CONFIG, maximisers=(poor, poor))
    generate(tmp_path, config, engine=local_engine(1))
    report = verify(tmp_path, sample=30, budget=2)
    assert report.damaged == {}
    for row in report.dims:
        assert row["within_1e-5"] is not None
        assert row["within_1e-5"] < 1
        assert row["largest_gap"] is not None
        assert row["largest_gap"] > 0.1


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.unlink(), "missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-5]), "damaged"),
        (lambda path: path.write_bytes(b"GIF89a"), "not a shard"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\xff"), "checksum"),
    ],
)
def test_damage_is_named_and_repaired_alone(
    folder: Path, whole: dict[str, bytes], damage: Any, reason: str
) -> None:
    damage(folder / TARGET.filename)
    report = verify(folder, sample=4, budget=1)
    assert list(report.damaged) == [TARGET.index]
    assert TARGET.filename in report.damaged[TARGET.index]
    assert reason in report.damaged[TARGET.index]
    assert [row["paths"] for row in report.dims] == [30, 20]
    generate(folder, CONFIG, engine=local_engine(1), only=list(report.damaged))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole


def set_first(value: Any) -> Any:
    def change(column: np.ndarray) -> np.ndarray:
        column.flat[0] = value
        return column

    return change


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"f_opt": set_first(np.nan)}, "f_opt has values that are not finite"),
        ({"x_opt": set_first(1.001)}, "x_opt leaves the unit cube"),
        ({"lengthscale": set_first(0.5)}, "not those of its seed"),
        ({"noise_sd": lambda column: column * np.float32(1.001)}, "not those of its seed"),
        ({"path_seed": set_first(12345)}, "not those of its seed"),
        ({"f_opt": lambda column: column + np.float32(1e-4)}, "f_opt is not the value at x_opt"),
    ],
)
def test_wrong_values_under_a_right_checksum(
    folder: Path, columns: dict[str, Any], reason: str
) -> None:
    forge(folder, **columns)
    report = verify(folder, sample=60, budget=1)
    assert list(report.damaged) == [TARGET.index]
    assert reason in report.damaged[TARGET.index]


def test_a_corpus_without_any_whole_shard(folder: Path) -> None:
    for shard in CONFIG.plan:
        (folder / shard.filename).unlink()
    report = verify(folder)
    assert sorted(report.damaged) == list(range(6))
    assert report.dims == []


def test_a_folder_without_a_corpus(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"corpus\.json does not exist"):
        verify(tmp_path)
