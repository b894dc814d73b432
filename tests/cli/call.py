from click import Command
from click.testing import CliRunner, Result


def call(command: Command, *arguments: object) -> Result:
    """Run a command, whatever its exit code is; its errors are raised."""
    result = CliRunner().invoke(command, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def invoke(command: Command, *arguments: object) -> Result:
    """Run a command that is to succeed."""
    result = call(command, *arguments)
    assert result.exit_code == 0, result.output
    return result
