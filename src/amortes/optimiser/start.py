"""What a run may start from: past results, configs to try first, a table of results."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from amortes.errors import DataError, shown
from amortes.optimiser.space import Space
from amortes.optimiser.table import is_table, read_results
from amortes.optimiser.trials import Trial

if TYPE_CHECKING:
    import pandas as pd

Entries = Iterable[Trial | tuple[Mapping[str, Any], float] | Mapping[str, Any]]
"""Results as `Trial` or (config, value), and configs to try first, as pending trials are."""
Table: TypeAlias = "str | os.PathLike[str] | pd.DataFrame"
"""A table of results: a CSV or Parquet file, or a DataFrame."""
Start: TypeAlias = "Entries | Table | Callable[[Space], Entries | Table]"
"""A list, a table, or a function of the space that returns one of them."""


def entries(start: Start, space: Space) -> Iterable[Any]:
    """One entry after the other, of a list, a table, or what a function of the space returns."""
    given: Any = start(space) if callable(start) else start
    if is_table(given):
        return read_results(given, space)
    try:
        if isinstance(given, bytes | Mapping):
            raise TypeError
        one_by_one: Iterable[Any] = iter(given)
    except TypeError:
        raise DataError(
            f"start: expected a list of (config, value) pairs, trials or configs, a DataFrame, or "
            f"a file of results, not {shown(given)}."
        ) from None
    return one_by_one
