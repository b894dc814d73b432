import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from amortes.cli import app
from amortes.cli.console import EXIT_FAILED_CHECK, EXIT_USAGE
from amortes.cli.prior_corpus import generate, verify
from amortes.errors import ConfigError, FileError
from tests.cli.call import call


@pytest.mark.parametrize(("prior", "name"), [("paper", "a.png"), ("paper-1d", "b.svg")])
def test_a_figure_is_written(tmp_path: Path, prior: str, name: str) -> None:
    target = tmp_path / "new" / name
    result = CliRunner().invoke(app, ["prior", "show", "--prior", prior, "-o", str(target)])
    assert result.exit_code == 0, result.output
    start = target.read_bytes()[:5]
    assert start in (b"\x89PNG\r", b"<?xml")
    assert [p.name for p in target.parent.iterdir()] == [name]


def test_a_wrong_format_is_explained(tmp_path: Path) -> None:
    target = tmp_path / "new" / "a.foo"
    result = CliRunner().invoke(app, ["prior", "show", "-o", str(target)])
    assert result.exit_code == EXIT_USAGE
    assert not target.parent.exists()


SMALL = ["--dims", "1-2", "--shard-size", "32"]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_generate_then_go_on_without_options(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    options = ["--paths", 100, "--seed", 3, "--workers", 1, *SMALL]
    [row] = json.loads(call(generate, folder, *options, "--json").stdout)
    assert (row["paths"], row["made"]) == (100, 100)
    assert row["MB"] == pytest.approx(sum(map(len, content(folder).values())) / 1e6)
    before = content(folder)
    [row] = json.loads(call(generate, folder, "--workers", 1, "--json").stdout)
    assert (row["paths"], row["made"]) == (100, 0)
    assert content(folder) == before
    assert "100" in call(generate, folder).stdout  # as a table
    with pytest.raises(ConfigError, match="seed: has 3, asked for 4"):
        call(generate, folder, "--seed", 4)
    with pytest.raises(ConfigError, match=r"dims: has \[1, 2\], asked for \[1, 2, 3\]"):
        call(generate, folder, "--dims", "1-3")


def test_wrong_use_is_explained(tmp_path: Path) -> None:
    cases: list[tuple[list[Any], str]] = [
        ([], "--paths"),
        (["--paths", 10, "--dims", "6-1"], "--dims"),
        (["--paths", 10, "--ray-address", "auto"], "--engine ray"),
    ]
    for options, message in cases:
        result = call(generate, tmp_path / "corpus", *options)
        assert result.exit_code == EXIT_USAGE
        assert message in result.stderr
    with pytest.raises(FileError, match=r"corpus\.json does not exist"):
        call(generate, tmp_path / "corpus", "--only-shards", 1)
    with pytest.raises(ConfigError, match="no prior 'papre'"):
        call(generate, tmp_path / "corpus", "--paths", 10, "--prior", "papre")
    assert not (tmp_path / "corpus").exists()


def test_verify_names_damage_and_the_command_that_repairs_it(tmp_path: Path) -> None:
    call(generate, tmp_path, "--paths", 60, "--dims", "1-2", "--shard-size", 10, "--workers", 1)
    before = content(tmp_path)
    result = call(verify, tmp_path, "--sample", 4, "--budget", 2)
    assert result.exit_code == 0
    assert "6 of 6 shards are whole" in result.stdout
    flipped = bytearray(before["shard-00002.safetensors"])
    flipped[-20] ^= 1
    (tmp_path / "shard-00002.safetensors").write_bytes(flipped)
    (tmp_path / "shard-00004.safetensors").write_bytes(before["shard-00004.safetensors"][:900])
    (tmp_path / "shard-00005.safetensors").unlink()
    result = call(verify, tmp_path, "--sample", 4, "--budget", 2, "--json")
    assert result.exit_code == EXIT_FAILED_CHECK
    report = json.loads(result.stdout)
    assert sorted(report["damaged"]) == ["2", "4", "5"]
    assert [row["within_1e-5"] for row in report["dims"]] == [1.0, 1.0]
    repair = f"amortes prior generate {tmp_path} --only-shards 2,4,5"
    assert report["repair"] == repair
    assert repair in call(verify, tmp_path, "--sample", 0).stderr
    call(generate, *repair.split()[3:], "--workers", 1)
    assert content(tmp_path) == before
    assert call(verify, tmp_path, "--sample", 0).exit_code == 0


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    command = "from amortes.cli.prior_corpus import generate; generate()"
    arguments = [str(folder), "--paths", "750", *SMALL, *options]
    return subprocess.Popen(
        [sys.executable, "-c", command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_shards(folder: Path, count: int, process: subprocess.Popen[str]) -> None:
    while len(list(folder.glob("shard-*"))) < count:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


def wait_for_end_of_group(group: int) -> None:
    """Every process of the group, so every worker, ends within seconds."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    os.killpg(group, signal.SIGKILL)
    pytest.fail("workers outlived the process that started them")


def test_a_killed_run_goes_on_and_ends_as_if_undisturbed(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    process = start(folder, "--workers", "2")
    wait_for_shards(folder, 6, process)
    process.kill()
    process.communicate(timeout=20)
    wait_for_end_of_group(process.pid)
    assert 6 <= len(list(folder.glob("shard-*"))) < 24
    call(generate, folder, "--workers", 1)
    call(generate, tmp_path / "undisturbed", "--paths", 750, *SMALL, "--workers", 1)
    assert len(content(folder)) == 25
    assert content(folder) == content(tmp_path / "undisturbed")
