"""What is needed of pandas, imported only where a DataFrame is made or read from a file."""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from amortes.errors import FileError, MissingExtraError

if TYPE_CHECKING:
    import pandas as pd


def new_frame(columns: Mapping[str, list[Any]]) -> "pd.DataFrame":
    """A DataFrame of columns of equal length; None where something is missing."""
    pandas = _pandas()
    frame: pd.DataFrame = pandas.DataFrame(columns)
    for name, values in columns.items():
        # Whole numbers and truth values with gaps would become floats or objects.
        known = {type(value) for value in values if value is not None}
        if known in ({int}, {bool}) and None in values:
            frame[name] = pandas.array(values)
        elif not known:
            frame[name] = frame[name].astype("float64")  # else no type at all
    return frame


def is_frame(value: object) -> bool:
    """Whether it is a DataFrame, without importing pandas: who has one has imported it."""
    pandas: Any = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def is_missing(value: object) -> bool:
    """Whether a cell is empty: no text, None, NaN or pandas's NA."""
    if value is None or (isinstance(value, float) and value != value):
        return True
    pandas: Any = sys.modules.get("pandas")
    return value is pandas.NA if pandas is not None and not isinstance(value, str) else value == ""


def records(frame: "pd.DataFrame") -> Iterator[tuple[Any, dict[str, Any]]]:
    """The label and the cells, by column, of each row."""
    names = [str(column) for column in frame.columns]
    cells = zip(*(frame.iloc[:, i].tolist() for i in range(len(names))), strict=True)
    for label, row in zip(frame.index.tolist(), cells, strict=True):
        yield label, dict(zip(names, row, strict=True))


def read_parquet(path: str) -> "pd.DataFrame":
    """The table in a Parquet file; a `FileError` if it is none."""
    pandas = _pandas()
    try:
        frame: pd.DataFrame = pandas.read_parquet(path)
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {path}: {error}") from None
    return frame


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingExtraError(
            "tables need pandas, which is not installed; run `pip install amortes[pandas]`."
        ) from None
    return pandas
