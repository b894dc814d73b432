from pathlib import Path

import pytest

from amortes.bench.methods.ours import Ours, OursFactory
from amortes.bench.methods.registry import method_factory
from amortes.bench.protocol import MethodFactory, weights_digest
from amortes.errors import FileError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser.model import ACQUISITIONS
from amortes.pretrained import DEFAULT, load_pretrained, weights_path
from amortes.prior.gp import named_prior
from tests.bench.methods.conduct import Quadratic, check_conduct
from tests.optimiser.conftest import untrained


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
    digests = []
    for content in (b"one", b"two", weights_path(DEFAULT).read_bytes()):
        file.write_bytes(content)
        digests.append(weights_digest(OursFactory("jes", str(file))))
    assert len(set(digests)) == 3
    assert digests[-1] == weights_digest(method_factory("mes"))
    assert weights_digest(method_factory("random")) == ""
    made = OursFactory("jes", str(file))(Quadratic(2), 0)
    theirs = load_pretrained()[0].state_dict()
    assert all(v.equal(theirs[name]) for name, v in made.network.state_dict().items())
