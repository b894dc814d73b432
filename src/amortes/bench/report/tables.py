"""Tables of text, as Markdown, HTML and CSV.

A cell in **double asterisks** is emphasised; CSV leaves the asterisks out.
"""

import csv
import html
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells of text with a name (of files) and a title (for readers)."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The table with its title in bold above; first column left, others right."""
        lines = [
            f"**{self.title}**",
            "",
            _line(self.columns),
            "|---|" + "---:|" * (len(self.columns) - 1),
            *(_line(row) for row in self.rows),
        ]
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        """The table with a caption, in a box that scrolls sideways."""
        head = "".join(f'<th scope="col">{_text(name)}</th>' for name in self.columns)
        body = "".join(
            f'<tr><th scope="row">{_text(row[0])}</th>'
            + "".join(f"<td>{_text(cell)}</td>" for cell in row[1:])
            + "</tr>\n"
            for row in self.rows
        )
        return (
            f'<div class="scroll"><table><caption>{html.escape(self.title)}</caption>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
        )

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


def counted(n: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def bold(cell: str) -> str:
    """Emphasise a cell."""
    return f"**{cell}**"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _text(cell: str) -> str:
    strong = len(cell) > 4 and cell.startswith("**") and cell.endswith("**")
    return f"<strong>{html.escape(cell[2:-2])}</strong>" if strong else html.escape(cell)
