import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from amortes.cli import evaluate as module
from amortes.cli.evaluate import _variants, evaluate
from amortes.errors import FileError
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.oracles import alpha_tasks, figure, reference
from amortes.oracles.brute_force import BruteForceConfig
from amortes.oracles.smc import SMCConfig
from amortes.prior.gp import GPPrior
from amortes.training.export import export
from amortes.training.loop import train
from amortes.training.run import Run
from tests.oracles.fake import KnownNetwork
from tests.training.fake import fake_recipe

SMC = SMCConfig(particles=64, final_particles=64)
BRUTE = BruteForceConfig(functions=1 << 11, hyperparameters=16, leaf=64, repeats=2, smc=SMC)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Files of a base network, and of one with an alpha stage."""
    folder = tmp_path_factory.mktemp("runs")
    files = folder / "base.safetensors", folder / "alpha.safetensors"
    train(folder / "base", fake_recipe(steps=2))
    train(folder / "alpha", fake_recipe("alpha", steps=2), base=folder / "base")
    export(Run.open(folder / "base"), files[0])
    export(Run.open(folder / "alpha"), files[1])
    return files


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AMORTES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(reference, "DATASETS", 4)
    monkeypatch.setattr(reference, "smc_config", lambda n: SMC)
    monkeypatch.setattr(alpha_tasks, "BruteForceConfig", lambda: BRUTE)
    monkeypatch.setattr(figure, "QUERIES", 16)


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(evaluate, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_base_prints_a_row_per_cell_and_the_mean(weights: tuple[Path, Path]) -> None:
    rows = json.loads(
        invoke("base", weights[0], "--cells", "1:3,2:4", "--datasets", "3", "--json").stdout
    )
    assert [(row["network"], row["d"], row["n"]) for row in rows] == [
        ("network", 1, 3),
        ("network", 2, 4),
        ("network", "all", "all"),
    ]
    assert rows[2]["excess"] == pytest.approx((rows[0]["excess"] + rows[1]["excess"]) / 2)
    table = invoke("base", weights[0], "--cells", "1:3", "--datasets", "3").stdout
    assert "…" not in table
    for word in ("excess", "cover", "gain", "base.safetensors on prior tiny"):
        assert word in table


def test_alpha_compares_the_methods(weights: tuple[Path, Path]) -> None:
    arguments = ("alpha", weights[1], "--cells", "1:3,1:4", "--tasks", "1", "--no-botorch")
    rows = json.loads(invoke(*arguments, "--json").stdout)
    assert {row["n"] for row in rows} <= {"3", "4", "all"}
    assert all(-1.0 <= row["monte_carlo"] <= 1.0 for row in rows)
    assert all(row["botorch"] is None for row in rows)
    assert "…" not in invoke(*arguments).stdout


def test_alpha_needs_gains(weights: tuple[Path, Path]) -> None:
    with pytest.raises(FileError, match="no trained gains"):
        invoke("alpha", weights[0])


def test_figure_is_written(
    weights: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BruteForceConfig", lambda: BRUTE)
    output = tmp_path / "new" / "figure.svg"
    assert "Wrote" in invoke("figure", weights[1], "--context", "4", "-o", output).stdout
    assert output.read_text().startswith("<?xml")


def test_a_wrong_format_is_found_before_the_work(tmp_path: Path) -> None:
    result = CliRunner().invoke(evaluate, ["figure", "absent", "-o", str(tmp_path / "x.foo")])
    assert result.exit_code == click.UsageError.exit_code
    assert "must end in .png" in result.output


@pytest.mark.parametrize("cells", ["1", "1:2:3", "a:b", "", "1:5,1:0", "1:-2", "0:5"])
def test_wrong_cells_are_explained(weights: tuple[Path, Path], cells: str) -> None:
    result = CliRunner().invoke(evaluate, ["base", str(weights[0]), "--cells", cells])
    assert result.exit_code == click.UsageError.exit_code
    assert "1:5,4:20" in result.output


def test_a_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="missing"):
        invoke("base", tmp_path / "missing.safetensors")


def test_a_kernel_network_is_also_scored_without_its_correction() -> None:
    network = KernelNetwork(KernelConfig(), GPPrior())
    variants = _variants(network)
    assert list(variants) == ["learned", "closed form"]
    plain = variants["closed form"]
    assert isinstance(plain, KernelNetwork)
    assert network.use_correction
    assert not plain.use_correction
    assert plain.correction is network.correction
    assert list(_variants(KnownNetwork(lambda Xq: Xq))) == ["network"]
