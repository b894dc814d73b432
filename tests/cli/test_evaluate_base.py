import json
from pathlib import Path

import click
import pytest
import torch
from click.testing import CliRunner, Result

from amortes.cli.evaluate_base import _variants, base
from amortes.errors import FileError
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.prior.gp import GPPrior
from tests.oracles.fake import KnownNetwork

pytestmark = pytest.mark.usefixtures("small_oracles")


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(base, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_base_prints_a_row_per_cell_and_the_mean(fake_weights: tuple[Path, Path]) -> None:
    rows = json.loads(
        invoke(fake_weights[0], "--cells", "1:3,2:4", "--datasets", "3", "--json").stdout
    )
    assert [(row["network"], row["d"], row["n"]) for row in rows] == [
        ("network", 1, 3),
        ("network", 2, 4),
        ("network", "all", "all"),
    ]
    assert rows[2]["excess"] == pytest.approx((rows[0]["excess"] + rows[1]["excess"]) / 2)
    table = invoke(fake_weights[0], "--cells", "1:3", "--datasets", "3").stdout
    assert "…" not in table
    for word in ("excess", "cover", "gain", "base.safetensors on prior tiny"):
        assert word in table


@pytest.mark.parametrize("cells", ["1", "1:2:3", "a:b", "", "1:5,1:0", "1:-2", "0:5"])
def test_wrong_cells_are_explained(fake_weights: tuple[Path, Path], cells: str) -> None:
    result = CliRunner().invoke(base, [str(fake_weights[0]), "--cells", cells])
    assert result.exit_code == click.UsageError.exit_code
    assert "1:5,4:20" in result.output


def test_a_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="missing"):
        invoke(tmp_path / "missing.safetensors")


def test_what_a_kernel_network_learned_is_also_scored_without() -> None:
    network = KernelNetwork(KernelConfig(), GPPrior())
    for parameter in network.parameters():
        torch.nn.init.ones_(parameter)  # as if it had learned
    variants = _variants(network)
    assert list(variants) == ["learned", "untrained", "climbs"]
    assert variants["learned"] is network
    _, untrained, climbs = variants.values()
    assert isinstance(untrained, KernelNetwork)
    assert isinstance(climbs, KernelNetwork)
    assert untrained.config == network.config
    assert not all(bool((p == 1.0).all()) for p in untrained.parameters())
    assert climbs.encoder is None
    assert list(_variants(climbs)) == ["network"]
    assert list(_variants(KnownNetwork(lambda Xq: Xq))) == ["network"]
