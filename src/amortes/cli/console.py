"""What all commands share: consoles, progress bars, tables that are also JSON, exit codes.

Results go to standard output, everything else to standard error, so that output can be piped.
"""

import contextlib
import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from amortes.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Command = TypeVar("Command", bound=Callable[..., Any])

OUT = Console()
ERR = Console(stderr=True)

EXIT_FAILED_CHECK = 1  # the command worked, and what it checked is not in order
EXIT_USAGE = 2  # click's own
EXIT_ERROR = 3  # an AmortesError, or one of the system: the message says what is wrong
EXIT_INTERRUPTED = 130  # Ctrl-C or SIGTERM, as shells have it

FORMATS = ("", ".png", ".svg", ".pdf")  # of figures; without a suffix it is PNG

# Kinds of values.
PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
POSITIVE, NATURAL = click.IntRange(min=1), click.IntRange(min=0)


def option(*names: str, **settings: Any) -> Callable[[Command], Command]:
    """`click.option` that shows its default."""
    return click.option(*names, **{"show_default": True, **settings})


def options(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


json_option = option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def set_option(what: str) -> Callable[[Command], Command]:
    """`--set NAME=VALUE`, as often as one likes, to change settings of `what`."""
    return option(
        "--set",
        "overrides",
        multiple=True,
        metavar="NAME=VALUE",
        help=f"Change a setting of {what}. May be repeated; a wrong name lists all settings.",
    )


def figure_option(default: str) -> Callable[[Command], Command]:
    """`--output FILE` of a figure; a format that cannot be written is found before any work."""
    return option(
        "-o",
        "--output",
        default=default,
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_check_format,
        help="File for the figure: PNG, SVG or PDF.",
    )


def _check_format(ctx: click.Context, param: click.Parameter, value: Path) -> Path:
    if value.suffix.lower() not in FORMATS:
        raise click.BadParameter(f"{value} must end in .png, .svg or .pdf.")
    return value


@contextlib.contextmanager
def counting(unit: str, what: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """A progress bar on standard error with count and time left; silent when piped.

    Yields what moves it: `update(advance=1, note="d=2")` and the like.
    """
    with Progress(
        TextColumn("[progress.description]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{unit} {{task.fields[note]}}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=ERR,
        disable=not ERR.is_terminal,
    ) as bar:
        yield functools.partial(bar.update, bar.add_task(what, total=total, note=""))


def write_figure(figure: "Figure", output: Path) -> None:
    """Write a figure in the format its file is named after, or as PNG, and say where it is."""
    with atomic_path(output) as temporary:
        figure.savefig(temporary, format=output.suffix.lstrip(".") or "png", dpi=150)
    OUT.print(f"Wrote {output}", markup=False)


def show_rows(rows: Sequence[Mapping[str, Any]], *, as_json: bool, title: str = "") -> None:
    """Print dictionaries with equal keys as a table, or as a JSON list."""
    if as_json:
        click.echo(json.dumps(list(rows), indent=2))
        return
    table = Table(title=title or None, title_justify="left")
    for column in rows[0] if rows else ():
        left = isinstance(rows[0][column], str)
        table.add_column(column.replace("_", " "), justify="left" if left else "right")
    for row in rows:
        table.add_row(*(format_value(value) for value in row.values()))
    OUT.print(table)


def format_value(value: Any) -> str:
    """A number with four significant digits; anything else as it is."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def parse_names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Names from "jes,logei", each once; none from nothing."""
    names = (name.strip() for name in (value or "").split(","))
    found = tuple(dict.fromkeys(name for name in names if name))
    if value is not None and not found:
        raise click.BadParameter("expected names with commas between them.", ctx, param)
    return found


def parse_sizes(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Positive integers from "2,6"; none from nothing."""
    parts = [] if value is None else value.split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise click.BadParameter(f"{value!r} is not a list of sizes such as 2,6.", ctx, param)
    return tuple(int(part) for part in parts)


def parse_cells(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> list[tuple[int, int]]:
    """Pairs (1, 5), (4, 20) from "1:5,4:20"; none from nothing."""
    if value is None:
        return []
    try:
        cells = [(int(d), int(n)) for d, n in (cell.split(":") for cell in value.split(","))]
    except ValueError:
        cells = []
    if min((min(cell) for cell in cells), default=0) < 1:
        raise click.BadParameter(
            f"{value!r} is not a list of d:n with d and n of at least 1, as in 1:5,4:20."
        )
    return cells


def parse_ranges(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Whole numbers from "3", "1-6" or "0,4,7-9", in order, each once; none from nothing."""
    numbers: set[int] = set()
    for part in [] if value is None else value.split(","):
        first, dash, last = part.partition("-")
        try:
            run = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            run = range(0)
        if not run:
            raise click.BadParameter(f"{value!r} is not a list such as 3 or 1-6 or 0,4,7-9.")
        numbers.update(run)
    return tuple(sorted(numbers))
