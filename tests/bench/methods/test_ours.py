from pathlib import Path

import pytest

from amortes.bench.methods.ours import Ours, OursFactory
from amortes.bench.methods.registry import method_factory
from amortes.bench.protocol import MethodFactory, weights_digest
from amortes.errors import ConfigError, FileError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser.suggest import ACQUISITIONS
from amortes.pretrained import DEFAULT, load_pretrained, weights_path
from amortes.prior.gp import named_prior
from amortes.training.export import export
from amortes.training.loop import train
from amortes.training.run import TrainingRun
from tests.bench.methods.conduct import Quadratic, check_conduct
from tests.optimiser.conftest import untrained
from tests.training.fake import fake_recipe


@pytest.fixture(scope="module")
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))


def factory(network: KernelNetwork, score: str) -> MethodFactory:
    return lambda problem, seed: Ours(problem, seed, network, score)


@pytest.mark.parametrize("score", ACQUISITIONS)
def test_conduct(network: KernelNetwork, score: str) -> None:
    # Gains of an untrained network say little about where the optimum is.
    near = 0.15 if score in ("ei", "logei") else 0.4
    check_conduct(factory(network, score), Quadratic(2), near=near)


@pytest.mark.parametrize("score", ["jes", "logei"])
def test_pool(network: KernelNetwork, score: str) -> None:
    check_conduct(factory(network, score), Quadratic(2, pool=40), steps=4)


def test_the_digest_says_which_weights(tmp_path: Path) -> None:
    file = tmp_path / "mine.st"  # any name will do
    with pytest.raises(FileError, match=rf"mine\.st does not exist; .* one of {DEFAULT}, "):
        weights_digest(OursFactory("jes", str(file)))
    file.write_bytes(b"no weights")
    with pytest.raises(FileError, match=r"mine\.st"):
        weights_digest(OursFactory("jes", str(file)))
    digests = []
    for name in ("kernel-paper", "kernel-paper-1d", DEFAULT):
        file.write_bytes(weights_path(name).read_bytes())
        digests.append(weights_digest(OursFactory("jes", str(file))))
    assert len(set(digests)) == 3
    assert digests[-1] == weights_digest(method_factory("mes"))
    assert weights_digest(method_factory("random")) == ""
    made = OursFactory("jes", str(file))(Quadratic(2), 0)
    theirs = load_pretrained()[0].state_dict()
    assert all(
        v.equal(theirs[name]) for name, v in made.optimizer._suggester.network.state_dict().items()
    )


def test_gains_that_were_not_trained_are_found_by_the_digest(tmp_path: Path) -> None:
    file = tmp_path / "base.safetensors"
    train(tmp_path / "base", fake_recipe(steps=1))
    export(TrainingRun.open(tmp_path / "base"), file)
    assert weights_digest(OursFactory("logei", str(file)))
    with pytest.raises(ConfigError, match="no trained gains"):
        weights_digest(OursFactory("jes", str(file)))
