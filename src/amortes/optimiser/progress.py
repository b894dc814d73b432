"""The progress bar of `minimize`: on a terminal, in a notebook, or none.

On a terminal rich draws it, on standard error. In a notebook (Jupyter, Colab, VS Code) it is a line
of HTML that is updated in place, which needs no widgets and stays in the saved notebook.
"""

import contextlib
import html
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console

PAUSE = 0.1
"""Seconds between two updates of a notebook's bar."""


class Bar(NamedTuple):
    """What can be done with a bar."""

    update: Callable[[int, str], None]
    """So many trials are done; the note is what else there is to say."""
    say: Callable[[str], None]
    """Print a line."""


def progress_bar(total: int, *, shown: bool) -> contextlib.AbstractContextManager[Bar]:
    """The bar of a run of `total` trials where it runs; if not `shown` it says nothing."""
    if shown and (display := _notebook_display()) is not None:
        return notebook_bar(total, display)
    return terminal_bar(total, shown=shown)


@contextlib.contextmanager
def terminal_bar(total: int, *, shown: bool, console: "Console | None" = None) -> Iterator[Bar]:
    """A bar on standard error; nothing is drawn where that is piped."""
    # A tenth of a second that those who ask and tell need not wait for.
    from rich import progress
    from rich.console import Console

    console = console or Console(stderr=True)
    columns = (
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("trials, {task.fields[note]}"),
        progress.TimeElapsedColumn(),
    )
    hidden = not (shown and console.is_terminal)
    with progress.Progress(*columns, console=console, disable=hidden) as bar:
        task = bar.add_task("", total=total, note="")

        def update(completed: int, note: str) -> None:
            bar.update(task, completed=completed, note=note)

        yield Bar(update, console.print if shown else lambda text: None)


@contextlib.contextmanager
def notebook_bar(total: int, display: Callable[..., Any]) -> Iterator[Bar]:
    """A bar in the output of a notebook's cell, drawn now and then; `display` is IPython's."""
    begun, drawn, state = time.monotonic(), -PAUSE, (0, "")

    def bundle() -> dict[str, str]:
        completed, note = state
        minutes, seconds = divmod(int(time.monotonic() - begun), 60)
        text = f"{completed}/{total} trials, {note}" if note else f"0/{total} trials"
        text += f", {minutes}:{seconds:02}"
        bar = f"<progress value='{completed}' max='{total}'></progress>"
        return {"text/plain": text, "text/html": f"{bar} {html.escape(text)}"}

    def update(completed: int, note: str) -> None:
        nonlocal drawn, state
        state = completed, note
        if time.monotonic() - drawn >= PAUSE:
            drawn = time.monotonic()
            handle.update(bundle(), raw=True)

    handle = display(bundle(), raw=True, display_id=True)
    try:
        yield Bar(update, print)
    finally:
        handle.update(bundle(), raw=True)


def _notebook_display() -> Callable[..., Any] | None:
    """IPython's `display` if this runs in a notebook's kernel."""
    ipython: Any = sys.modules.get("IPython")  # imported long ago where there is one
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    display: Callable[..., Any] = ipython.display.display
    return display
