"""The progress bar of `minimize`: on a terminal, in a notebook, or none.

On a terminal rich draws it, on standard error. In a notebook (Jupyter, Colab, VS Code) it is a line
of HTML that is updated in place, which needs no widgets and stays in the saved notebook.
"""

import html
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from rich.console import Console

PAUSE = 0.1
"""Seconds between two updates of a notebook's bar."""


class Bar(Protocol):
    """A bar, as a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def update(self, completed: int, note: str) -> None:
        """So many trials are done; the note is what else there is to say."""

    def say(self, text: str) -> None:
        """Print a line, above the bar."""


def progress_bar(total: int, *, shown: bool) -> Bar:
    """The bar of a run of `total` trials where it runs; if not `shown` it says nothing."""
    if shown and (display := _notebook_display()) is not None:
        return NotebookBar(total, display)
    return TerminalBar(total, shown=shown)


class TerminalBar:
    """A bar on standard error; nothing is drawn where that is piped."""

    def __init__(self, total: int, *, shown: bool, console: "Console | None" = None) -> None:
        # A tenth of a second that those who ask and tell need not wait for.
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        self._console, self._shown = console or Console(stderr=True), shown
        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("trials, {task.fields[note]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not (shown and self._console.is_terminal),
        )
        self._task = self._bar.add_task("", total=total, note="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def update(self, completed: int, note: str) -> None:
        """Draw the bar."""
        self._bar.update(self._task, completed=completed, note=note)

    def say(self, text: str) -> None:
        """Print a line, above the bar."""
        if self._shown:
            self._console.print(text)


class NotebookBar:
    """A bar in the output of a notebook's cell; `display` is IPython's."""

    def __init__(self, total: int, display: Callable[..., Any]) -> None:
        self._total, self._display = total, display
        self._begun = time.monotonic()
        self._drawn = -PAUSE
        self._state = (0, "")

    def __enter__(self) -> Self:
        self._handle = self._display(self._bundle(), raw=True, display_id=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._handle.update(self._bundle(), raw=True)

    def update(self, completed: int, note: str) -> None:
        """Draw the bar, unless it was drawn just now."""
        self._state = completed, note
        now = time.monotonic()
        if now - self._drawn >= PAUSE:
            self._drawn = now
            self._handle.update(self._bundle(), raw=True)

    def say(self, text: str) -> None:
        """Print a line, below the bar."""
        print(text)

    def _bundle(self) -> dict[str, str]:
        completed, note = self._state
        minutes, seconds = divmod(int(time.monotonic() - self._begun), 60)
        text = f"{completed}/{self._total} trials, {note}" if note else f"0/{self._total} trials"
        text += f", {minutes}:{seconds:02}"
        drawn = f"<progress value='{completed}' max='{self._total}'></progress>"
        return {"text/plain": text, "text/html": f"{drawn} {html.escape(text)}"}


def _notebook_display() -> Callable[..., Any] | None:
    """IPython's `display` if this runs in a notebook's kernel."""
    ipython: Any = sys.modules.get("IPython")  # imported long ago where there is one
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    display: Callable[..., Any] = ipython.display.display
    return display
