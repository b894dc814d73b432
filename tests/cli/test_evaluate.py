import json
from pathlib import Path

import click
import pytest
import torch
from click.testing import CliRunner

from amortes.cli import evaluate
from amortes.cli.evaluate import _variants, alpha, base, figure, show_scores
from amortes.errors import ConfigError, FileError
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.oracles.brute_force import BruteForceConfig
from amortes.prior.gp import GPPrior
from tests.cli.call import invoke
from tests.oracles.fake import KnownNetwork

pytestmark = pytest.mark.usefixtures("small_oracles")

ROWS = [
    {"network": "learned", "d": 1, "excess": 0.12345, "ceiling": 0.9},
    {"network": "learned", "d": "all", "excess": 0.2, "ceiling": 0.9},
    {"network": "closed form", "d": 1, "excess": 0.6789, "ceiling": 0.9},
]


def test_base_prints_a_row_per_cell_and_the_mean(fake_weights: tuple[Path, Path]) -> None:
    rows = json.loads(
        invoke(base, fake_weights[0], "--cells", "1:3,2:4", "--datasets", "3", "--json").stdout
    )
    assert [(row["network"], row["d"], row["n"]) for row in rows] == [
        ("network", 1, 3),
        ("network", 2, 4),
        ("network", "all", "all"),
    ]
    assert rows[2]["excess"] == pytest.approx((rows[0]["excess"] + rows[1]["excess"]) / 2)
    table = invoke(base, fake_weights[0], "--cells", "1:3", "--datasets", "3").stdout
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
        invoke(base, tmp_path / "missing.safetensors")


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


def test_it_compares_the_methods(fake_weights: tuple[Path, Path]) -> None:
    arguments = (fake_weights[1], "--cells", "1:3,1:4", "--tasks", "1", "--no-botorch")
    rows = json.loads(invoke(alpha, *arguments, "--json").stdout)
    assert {row["n"] for row in rows} <= {"3", "4", "all"}
    assert {row["method"] for row in rows} == {"learned", "monte_carlo"}
    assert all(-1.0 <= row["rank"] <= 1.0 for row in rows)
    assert "…" not in invoke(alpha, *arguments).stdout


def test_alpha_needs_gains(fake_weights: tuple[Path, Path]) -> None:
    with pytest.raises(FileError, match="no trained gains"):
        invoke(alpha, fake_weights[0])


def test_figure_is_written(
    fake_weights: tuple[Path, Path],
    tmp_path: Path,
    small_oracles: BruteForceConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evaluate, "BruteForceConfig", lambda: small_oracles)
    output = tmp_path / "new" / "figure.svg"
    assert "Wrote" in invoke(figure, fake_weights[1], "--context", "4", "-o", output).stdout
    assert output.read_text().startswith("<?xml")


def test_a_figure_needs_gains(fake_weights: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no trained gains"):
        invoke(figure, fake_weights[0], "-o", tmp_path / "figure.svg")


def test_a_wrong_format_is_found_before_the_work(tmp_path: Path) -> None:
    result = CliRunner().invoke(figure, ["absent", "-o", str(tmp_path / "x.foo")])
    assert result.exit_code == click.UsageError.exit_code
    assert "must end in .png" in result.output


def test_a_table_for_each_value_of_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    show_scores(ROWS, "network", "w", as_json=False)
    text = capsys.readouterr().out
    assert text.index("w: learned") < text.index("0.123 ")
    assert text.index("0.2 ") < text.index("w: closed form") < text.index("0.679 ")
    assert "ceiling" not in text


def test_json_has_all_digits(capsys: pytest.CaptureFixture[str]) -> None:
    show_scores(ROWS, "network", "w", as_json=True)
    assert json.loads(capsys.readouterr().out) == ROWS
