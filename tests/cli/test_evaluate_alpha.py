import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from amortes.cli.evaluate_alpha import alpha
from amortes.errors import FileError

pytestmark = pytest.mark.usefixtures("small_oracles")


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(alpha, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_it_compares_the_methods(fake_weights: tuple[Path, Path]) -> None:
    arguments = (fake_weights[1], "--cells", "1:3,1:4", "--tasks", "1", "--no-botorch")
    rows = json.loads(invoke(*arguments, "--json").stdout)
    assert {row["n"] for row in rows} <= {"3", "4", "all"}
    assert all(-1.0 <= row["monte_carlo"] <= 1.0 for row in rows)
    assert all(row["botorch"] is None for row in rows)
    assert "…" not in invoke(*arguments).stdout


def test_it_needs_gains(fake_weights: tuple[Path, Path]) -> None:
    with pytest.raises(FileError, match="no trained gains"):
        invoke(fake_weights[0])
