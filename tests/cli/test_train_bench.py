import json

import pytest
from click.testing import CliRunner, Result

from amortes.cli.train_bench import bench

pytestmark = pytest.mark.usefixtures("fake_transformer")


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(bench, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_speed_as_table_and_json() -> None:
    arguments = ("--recipe", "transformer", "--prior", "paper-1d", "--steps", 1, "--threads", 1)
    assert "datasets per second" in invoke(*arguments).stdout
    (row,) = json.loads(invoke(*arguments, "--stage", "alpha", "--json").stdout)
    assert row["stage"] == "alpha"
    assert row["datasets_per_second"] > 0
    assert {"data_share", "forward_share", "backward_share", "peak_share"} <= row.keys()
