import pytest
from click.testing import CliRunner

from amortes.cli.evaluate import COMMANDS, evaluate


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_teaches_with_examples(command: list[str]) -> None:
    result = CliRunner().invoke(evaluate, [*command, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert "amortes evaluate" in result.stdout
