import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import pytest
import torch

from amortes.errors import ConfigError, FileError
from amortes.nets.base import GAINS
from amortes.nets.kernel import KernelNetwork
from amortes.oracles import many_draws
from amortes.oracles.brute_force import rank_correlation
from amortes.pretrained import DEFAULT, as_network, load_pretrained, names, weights_path
from amortes.prior.tasks import TaskConfig, TaskStream
from amortes.training.export import export, load_network
from amortes.training.lessons import noisy
from amortes.training.loop import train
from amortes.training.recipes import EVALUATION_SEED, build_network
from amortes.training.run import TrainingRun
from tests.pretrained.golden import FILE, compute
from tests.training.fake import fake_recipe
from tests.training.test_tensorfile import rewrite


def test_the_default_is_there_and_first() -> None:
    assert names()[0] == DEFAULT


def test_loading_twice_shares_one_network() -> None:
    network, _ = load_pretrained()
    assert load_pretrained()[0] is network
    assert load_pretrained(DEFAULT)[0] is network
    assert load_pretrained(name=DEFAULT)[0] is network
    assert not network.training
    assert not any(p.requires_grad for p in network.parameters())
    assert network.trained_points is None  # the kernel network takes any number of points
    transformer, card = load_pretrained("transformer-paper")
    tasks = card.stages["base"]["recipe"]["tasks"]
    assert transformer.trained_points == tasks["max_context"]


def test_inference_needs_no_fcntl() -> None:
    code = (
        "import sys;"
        "sys.modules['fcntl'] = None;"  # as on Windows
        "from amortes.pretrained import load_pretrained;"
        "load_pretrained()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match=DEFAULT):
        load_pretrained("kernel-unknown")
    for name in ("kernel-unknown", "a" * 5000):
        with pytest.raises(ConfigError, match=f"'{name}' is neither a file nor the name"):
            as_network(name)


@pytest.mark.parametrize("name", names())
def test_predictions_and_gains_are_what_they_were(name: str) -> None:
    golden = json.loads(FILE.read_text())[name]
    now = compute(name)
    assert now.keys() == golden.keys()
    for key, rows in golden.items():
        for row, expected in zip(now[key], rows, strict=True):
            assert row == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_files_are_small() -> None:
    for name in names():
        assert weights_path(name).stat().st_size < 10e6


def test_a_network_by_its_name_its_file_or_itself() -> None:
    network = load_pretrained("kernel-paper")[0]
    assert as_network(None) is load_pretrained()[0]
    assert as_network("kernel-paper") is network
    assert as_network(network) is network
    of_file = as_network(weights_path("kernel-paper"), gains=True)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, of_file.state_dict()[name])
    with pytest.raises(ConfigError, match=r"'mine\.safetensors' is neither a file"):
        as_network("mine.safetensors")


def test_gains_must_have_been_trained(tmp_path: Path) -> None:
    train(tmp_path / "base", fake_recipe(steps=1))
    export(TrainingRun.open(tmp_path / "base"), tmp_path / "base.safetensors")
    assert as_network(tmp_path / "base.safetensors").prior == fake_recipe().prior
    with pytest.raises(ConfigError, match="has no trained gains"):
        as_network(tmp_path / "base.safetensors", gains=True)


@pytest.mark.parametrize("name", names())
def test_a_changed_configuration_is_noticed(name: str, tmp_path: Path) -> None:
    path = tmp_path / "changed"
    path.write_bytes(weights_path(name).read_bytes())
    rewrite(path)
    load_network(path)
    rewrite(path, prior=load_pretrained(name)[1].prior | {"max_dim": 99})
    with pytest.raises(FileError, match="its description does not match its checksum"):
        load_network(path)


@torch.no_grad()
def test_training_has_taught_the_encoder_something() -> None:
    network, card = load_pretrained()
    untrained = build_network(card.network, network.config, network.prior)
    stream = TaskStream(network.prior, EVALUATION_SEED, TaskConfig(batch_size=32, num_queries=0))
    for d, n in ((2, 10), (6, 40)):
        task = stream.batch_of(0, d, n)
        losses = [net.inference_loss(task.X, task.y, task.hyper) for net in (network, untrained)]
        assert losses[0] is not None
        assert losses[1] is not None
        assert float(losses[0]["density"]) < float(losses[1]["density"]) - 0.03
        assert float(losses[0]["gap"]) < float(losses[1]["gap"]) - 0.3


@torch.no_grad()
def test_training_has_taught_the_gain_network_to_rank_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = dataclasses.replace(many_draws.CONFIG, count=128, num_global=256, optima=128)
    monkeypatch.setattr(many_draws, "CONFIG", few)
    network, _ = load_pretrained()
    assert isinstance(network, KernelNetwork)
    prior = noisy(network.prior)
    ranks: dict[str, list[float]] = {"learned": [], "untrained": []}
    for d, n in ((2, 12), (4, 25), (6, 25)):
        task = TaskStream(prior, EVALUATION_SEED, TaskConfig(batch_size=1, num_queries=0))
        batch = task.batch_of(0, d, n)
        X, y = batch.X[0], (batch.y[0] - batch.y[0].mean()) / batch.y[0].std()
        Xq = many_draws.queries(X, y, seed=d)
        gain, _ = many_draws.many_draws(network, X, y, Xq)
        found = many_draws.variants(network)
        for name, own in ranks.items():
            one = found[name]
            values = one.gain(one.condition(X[None], y[None]), Xq[None]).mean[0]
            own += [rank_correlation(values[:, i], gain[:, i]) for i in range(len(GAINS))]
    assert fmean(ranks["learned"]) > 0.93
    assert fmean(ranks["untrained"]) < fmean(ranks["learned"]) - 0.03
