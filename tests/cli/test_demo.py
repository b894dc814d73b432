import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from amortes.cli.demo import demo
from amortes.nets.kernel import KernelNetwork
from amortes.prior.gp import named_prior
from tests.command.conftest import as_default
from tests.optimiser.conftest import untrained

__all__ = ["as_default"]


@pytest.fixture(scope="module")
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))


@pytest.mark.usefixtures("as_default")
def test_a_live_view_and_a_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr("amortes.cli.demo.ERR", terminal)
    output = tmp_path / "out" / "demo.png"
    result = CliRunner().invoke(demo, ["--evaluations", "8", "--seeds", "1", "-o", str(output)])
    assert result.exit_code == 0, result.output
    assert "race 1 of 1" in screen.getvalue()
    for words in ("JES", "LogEI", "random search", f"Wrote {output}"):
        assert words in result.stdout.replace("\n", "")
    assert output.read_bytes().startswith(b"\x89PNG")


def test_wrong_usage() -> None:
    assert CliRunner().invoke(demo, ["--evaluations", "3"]).exit_code == 2
