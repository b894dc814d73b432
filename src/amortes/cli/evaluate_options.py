"""What commands that compare weights with oracles share: options, and tables of scores."""

from collections.abc import Callable
from typing import Any

import click

from amortes.cli.console import FOLDER, Command, option, show_rows
from amortes.cli.parsing import parse_cells
from amortes.cli.weights import Weights
from amortes.prior.gp import PRIORS

weights_argument = click.argument("weights", type=Weights())
prior_option = option(
    "--prior",
    "prior_name",
    type=click.Choice(list(PRIORS)),
    help="Where the tasks come from.  [default: the prior of the weights]",
)
cache_option = option(
    "--cache",
    type=FOLDER,
    help="Folder for oracle results that are not part of the package.  "
    "[default: $AMORTES_CACHE or ~/.cache/amortes]",
)


def cells_option(shown: str) -> Callable[[Command], Command]:
    """Add --cells, the help of which says what is `shown` and by default."""
    return option("--cells", callback=parse_cells, metavar="d:n,...", help=shown)


def show_scores(rows: list[dict[str, Any]], by: str, title: str, *, as_json: bool) -> None:
    """Print JSON, or a table for each value of column `by`, rounded to fit 80 characters."""
    if as_json:
        show_rows(rows, as_json=True)
        return
    for value in dict.fromkeys(row[by] for row in rows):
        table = [
            {
                name: round(cell, 3) if isinstance(cell, float) else cell
                for name, cell in row.items()
                if name not in (by, "ceiling")
            }
            for row in rows
            if row[by] == value
        ]
        show_rows(table, as_json=False, title=f"{title}: {value}")
