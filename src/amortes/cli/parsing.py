"""Values of options that are lists, such as "2,6", "0,4,7-9" or "jes,logei"."""

import itertools
from collections.abc import Iterable

import click


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


def format_ranges(numbers: Iterable[int]) -> str:
    """The shortest text that `parse_ranges` reads as these numbers."""
    runs = itertools.groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0])
    ends = [[number for _, number in run] for _, run in runs]
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in ends)
