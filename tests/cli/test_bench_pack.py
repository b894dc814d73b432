from pathlib import Path

from click.testing import CliRunner

from amortes.cli.bench_pack import pack
from tests.bench.test_pack import sweep


def test_one_small_file(tmp_path: Path) -> None:
    folder = sweep(tmp_path / "one", "branin,2,0.316,jes,0,2,,,,-0.4,0.8,,")
    target = tmp_path / "packed.csv.gz"
    result = CliRunner().invoke(pack, [str(folder), "-o", str(target)])
    assert result.exit_code == 0, result.output
    assert "1 runs" in result.output.replace("\n", "")
    assert target.exists()
