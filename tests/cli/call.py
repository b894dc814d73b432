from click import Command
from click.testing import CliRunner, Result


def invoke(command: Command, *arguments: object) -> Result:
    """Run a command that is to succeed; its errors are raised."""
    result = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result
