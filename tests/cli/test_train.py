import pytest
from click.testing import CliRunner

from amortes.cli.train import COMMANDS, train


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_teaches_with_examples(command: list[str]) -> None:
    result = CliRunner().invoke(train, [*command, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert "amortes train" in result.stdout
