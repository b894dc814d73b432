"""Tables of text, as Markdown, HTML and CSV.

A cell in **double asterisks** is emphasised; CSV leaves the asterisks out.
"""

import csv
import html
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

NO_BREAK = "\N{NON-BREAKING HYPHEN}"  # headers are wrapped, but not within "8-D"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells of text with a name (of files) and a title (for readers)."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The table with its title in bold above; text is on the left, numbers on the right."""
        lines = [
            f"**{self.title}**",
            "",
            _line(self.columns),
            "|" + "".join("---|" if left else "---:|" for left in self._left),
            *(_line(row) for row in self.rows),
        ]
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        """The table with a caption, in a box that scrolls sideways."""
        sides = [' class="text"' if left else "" for left in self._left]
        head = "".join(
            f'<th scope="col"{side}>{_text(name).replace("-", NO_BREAK)}</th>'
            for name, side in zip(self.columns, sides, strict=True)
        )
        body = "".join(
            f'<tr><th scope="row"{sides[0]}>{_text(row[0])}</th>'
            + "".join(
                f"<td{side}>{_text(cell)}</td>"
                for cell, side in zip(row[1:], sides[1:], strict=True)
            )
            + "</tr>\n"
            for row in self.rows
        )
        return (
            f'<div class="scroll"><table><caption>{html.escape(self.title)}</caption>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
        )

    @property
    def _left(self) -> list[bool]:
        """For each column, whether it holds text; the first one always does."""
        words = [any(_is_text(row[i]) for row in self.rows) for i in range(1, len(self.columns))]
        return [True, *words]

    def csv(self) -> str:
        """Comma-separated values with a header."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(
            [cell.removeprefix("**").removesuffix("**") for cell in r] for r in self.rows
        )
        return buffer.getvalue()


def with_error(mean: float, error: float, digits: int = 2) -> str:
    """`-1.23 ± 0.04`; without the error if it is unknown, empty if the mean is."""
    if math.isnan(mean):
        return ""
    return f"{mean:.{digits}f}" + ("" if math.isnan(error) else f" ± {error:.{digits}f}")


def seconds(value: float) -> str:
    """Seconds with two significant digits, without exponents."""
    if math.isnan(value):
        return ""
    digits = max(0, 1 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{min(digits, 4)}f}"


def times(factor: float) -> str:
    """`3.1×`, `196×`: two significant digits, without exponents."""
    return f"{seconds(factor)}×" if not math.isnan(factor) else ""


def counted(n: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def bold(cell: str) -> str:
    """Emphasise a cell."""
    return f"**{cell}**"


def _is_text(cell: str) -> bool:
    return cell.removeprefix("**")[:1].isalpha()


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _text(cell: str) -> str:
    strong = len(cell) > 4 and cell.startswith("**") and cell.endswith("**")
    return f"<strong>{html.escape(cell[2:-2])}</strong>" if strong else html.escape(cell)
