from pathlib import Path

import pytest

from amortes.bench.methods.ours import Ours, OursFactory
from amortes.bench.methods.registry import OURS, method_factory
from amortes.bench.protocol import MethodFactory, weights_digest
from amortes.errors import FileError
from amortes.nets.kernel import KernelNetwork
from amortes.pretrained import DEFAULT, SUFFIX, weights_path
from amortes.prior.gp import named_prior
from tests.bench.methods.conduct import Quadratic, check_conduct
from tests.optimiser.conftest import untrained


@pytest.fixture(scope="module")
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))


def factory(network: KernelNetwork, score: str) -> MethodFactory:
    return lambda problem, seed: Ours(problem, seed, network, score)


@pytest.mark.parametrize("score", OURS)
def test_conduct(network: KernelNetwork, score: str) -> None:
    # Gains of an untrained network say little about where the optimum is.
    near = 0.05 if score in ("ei", "logei") else 0.4
    check_conduct(factory(network, score), Quadratic(2), near=near)


@pytest.mark.parametrize("score", ["jes", "logei"])
def test_pool(network: KernelNetwork, score: str) -> None:
    check_conduct(factory(network, score), Quadratic(2, pool=40), steps=4)


def test_the_digest_says_which_weights(tmp_path: Path) -> None:
    file = tmp_path / f"name{SUFFIX}"
    with pytest.raises(FileError, match=r"name\.safetensors does not exist"):
        weights_digest(OursFactory("jes", str(file)))
    digests = []
    for content in (b"one", b"two", weights_path(DEFAULT).read_bytes()):
        file.write_bytes(content)
        digests.append(weights_digest(OursFactory("jes", str(file))))
    assert len(set(digests)) == 3
    assert digests[-1] == weights_digest(method_factory("mes"))
    assert weights_digest(method_factory("random")) == ""
