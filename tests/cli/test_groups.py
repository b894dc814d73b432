import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from amortes.cli import groups
from amortes.cli.groups import LazyGroup

GROUPS = [group for group in vars(groups).values() if isinstance(group, LazyGroup)]
COMMANDS = [
    (group, command) for group in GROUPS for command in ([], *([name] for name in group.lazy))
]


@pytest.mark.parametrize(
    ("group", "command"), COMMANDS, ids=lambda part: getattr(part, "name", part)
)
def test_help_teaches_with_examples(group: click.Group, command: list[str]) -> None:
    result = CliRunner().invoke(group, [*command, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert f"amortes {group.name}" in result.stdout


@pytest.mark.parametrize(
    ("typed", "hint"), [("rnu", "Did you mean 'run'?"), ("zzz", "No such command 'zzz'.\n")]
)
def test_misspelled_commands_get_a_hint(typed: str, hint: str) -> None:
    result = CliRunner().invoke(groups.bench, [typed])
    assert result.exit_code == 2
    assert hint in result.stderr


@pytest.mark.parametrize(("word", "found"), [("run", ["--suite"]), ("rnu", [])])
def test_shells_complete_options_of_commands(word: str, found: list[str]) -> None:
    completion = ShellComplete(groups.bench, {}, "bench", "_BENCH_COMPLETE")
    completed = [item.value for item in completion.get_completions([word], "--sui")]
    assert completed == found
