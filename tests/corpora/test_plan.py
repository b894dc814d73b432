import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from amortes.corpora.plan import CONFIG_NAME, CorpusConfig, read_config
from amortes.errors import ConfigError, FileError
from amortes.files import write_json
from amortes.prior.gp import named_prior
from amortes.prior.newton import NewtonConfig

PAPER = named_prior("paper")


def test_plan_holds_every_path_once_in_equal_shares() -> None:
    config = CorpusConfig(prior=PAPER, num_paths=1003, dims=(1, 3, 6), shard_size=100)
    paths = Counter[int]()
    for shard in config.plan:
        paths[shard.d] += shard.num_paths
        assert 1 <= shard.num_paths <= 100
    assert paths == {1: 335, 3: 334, 6: 334}
    assert [shard.index for shard in config.plan] == list(range(len(config.plan)))
    assert config.plan[7].filename == "shard-00007.safetensors"
    # Dimensions take turns.
    assert [shard.d for shard in config.plan[:6]] == [1, 3, 6, 1, 3, 6]


def test_defaults_are_the_dims_and_maximisers_of_the_prior() -> None:
    config = CorpusConfig(prior=named_prior("robust"), num_paths=100)
    assert config.dims == tuple(range(1, 17))
    assert config.maximisers == tuple(NewtonConfig.for_dim(d) for d in range(1, 17))


def test_configuration_survives_json() -> None:
    config = CorpusConfig(
        prior=PAPER, num_paths=99, dims=(2, 4), seed=5, maximisers=(NewtonConfig(),) * 2
    )
    again = CorpusConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert again.digest == config.digest


def test_digest_depends_on_every_field() -> None:
    config = CorpusConfig(prior=PAPER, num_paths=100, dims=(1, 2))
    changes: list[dict[str, Any]] = [
        {"prior": dataclasses.replace(PAPER, kernel="matern52")},
        {"num_paths": 101},
        {"dims": (1, 3)},
        {"seed": 1},
        {"shard_size": 10},
        {"num_features": 64},
        {"maximisers": (NewtonConfig(num_points=64),) * 2},
    ]
    assert {name for change in changes for name in change} == {
        field.name for field in dataclasses.fields(CorpusConfig)
    }
    digests = {dataclasses.replace(config, **change).digest for change in changes}
    assert len(digests | {config.digest}) == len(changes) + 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dims": (1, 7)}, "d=7 is outside"),
        ({"dims": (2, 1)}, "dims"),
        ({"dims": (2, 2)}, "dims"),
        ({"num_paths": 5}, "num_paths"),
        ({"shard_size": 0}, "shard_size"),
        ({"num_features": 0}, "num_features"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"maximisers": (NewtonConfig(),)}, "maximisers"),
    ],
)
def test_impossible_values_are_named(fields: dict[str, Any], message: str) -> None:
    defaults: dict[str, Any] = {"prior": PAPER, "num_paths": 100}
    with pytest.raises(ConfigError, match=message):
        CorpusConfig(**(defaults | fields))


@pytest.mark.parametrize(
    "change",
    [
        {"format": "something else"},
        {"version": 2},
        {"plan": [1, 1, 1]},
        {"num_paths": "many"},
        {"unknown": 1},
        {"prior": {"kernel": "se", "flavour": "sour"}},
        {"prior": None},
        {"maximisers": {}},
    ],
)
def test_read_config_names_a_foreign_file(tmp_path: Path, change: dict[str, Any]) -> None:
    values = CorpusConfig(prior=PAPER, num_paths=100).to_dict()
    write_json(tmp_path / CONFIG_NAME, values)
    assert read_config(tmp_path).num_paths == 100
    write_json(tmp_path / CONFIG_NAME, values | change)
    with pytest.raises(FileError, match=CONFIG_NAME):
        read_config(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "not json"])
def test_read_config_of_no_description_at_all(tmp_path: Path, content: str) -> None:
    (tmp_path / CONFIG_NAME).write_text(content)
    with pytest.raises(FileError, match=CONFIG_NAME):
        read_config(tmp_path)
