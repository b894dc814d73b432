import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import amortes.cli
from amortes import __version__
from amortes.cli import COMMANDS, GO_ON, app, main
from amortes.errors import DataError


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS)], ids=lambda w: " ".join(w))
def test_help_teaches_with_examples(words: list[str]) -> None:
    result = CliRunner().invoke(app, [*words, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output


def test_help_does_not_wait_for_torch() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from amortes.cli import app;"
        "[CliRunner().invoke(app, [*words, '--help']) for words in"
        " ([], ['prior'], ['train'], ['bench'], ['evaluate'])];"
        "print('torch' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "amortes", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip().endswith(__version__)


@pytest.mark.parametrize(
    ("raised", "code", "words"),
    [
        (DataError("y has [ray] NaN"), 3, "y has [ray] NaN"),
        (PermissionError(13, "Permission denied", "/out"), 3, "Permission denied: '/out'"),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (click.Abort(), 130, "Interrupted."),
        (click.UsageError("no such option"), 2, "no such option"),
        (None, 0, ""),
    ],
)
def test_exit_codes(
    raised: BaseException | None,
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fake(standalone_mode: bool) -> int:
        if raised is not None:
            raise raised
        return 0

    monkeypatch.setattr(amortes.cli, "app", fake)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == code
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "goes_on"),
    [
        ("train base --run r", True),
        ("bench run --suite mini", True),
        ("evaluate bo k", True),
        ("optimize --space s", True),
        ("prior bench", False),
        ("bench latency", False),
        ("bench search", False),
        ("demo --seeds 1", False),
        ("evaluate figure k", False),
    ],
)
def test_commands_that_go_on_say_so_when_interrupted(
    words: str, goes_on: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fake(standalone_mode: bool) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(amortes.cli, "app", fake)
    monkeypatch.setattr(sys, "argv", ["amortes", *words.split()])
    with pytest.raises(SystemExit):
        main()
    assert ("again to continue" in capsys.readouterr().err) == goes_on


def test_the_commands_that_go_on_exist() -> None:
    for words in GO_ON:
        result = CliRunner().invoke(app, [*words.split(), "--help"])
        assert result.exit_code == 0, words
