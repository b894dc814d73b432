"""The progress bar of `minimize`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


def progress_bar(shown: bool) -> "Progress":
    """A bar on standard error with the best value; silent when piped."""
    # A tenth of a second that those who ask and tell need not wait for.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("trials, {task.fields[note]}"),
        TimeElapsedColumn(),
        console=console,
        disable=not (shown and console.is_terminal),
    )
