import io
from typing import Any

import pytest
from rich.console import Console

from amortes.optimiser import progress
from amortes.optimiser.progress import notebook_bar, terminal_bar


class Display:
    """IPython's `display`, as far as it is used: remembers what was shown."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def __call__(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> "Display":
        assert raw
        assert display_id
        self.shown.append(bundle)
        return self

    def update(self, bundle: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(bundle)


def test_a_notebooks_bar() -> None:
    display = Display()
    with notebook_bar(3, display) as bar:
        for i in (1, 2, 3):
            bar.update(i, f"best <{i}>")
    first, last = display.shown[0], display.shown[-1]
    assert first["text/plain"].startswith("0/3 trials, 0:0")
    assert last["text/plain"].startswith("3/3 trials, best <3>, 0:0")
    assert "<progress value='3' max='3'></progress>" in last["text/html"]
    assert "&lt;3&gt;" in last["text/html"]


def test_it_is_drawn_now_and_then_but_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    display = Display()
    with notebook_bar(1000, display) as bar:
        for i in range(1, 1001):
            now[0] += progress.PAUSE / 9.99
            bar.update(i, "best 1")
    assert 95 <= len(display.shown) <= 110
    assert display.shown[-1]["text/plain"] == "1000/1000 trials, best 1, 0:10"


def test_a_terminals_bar() -> None:
    for terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=80)
        with terminal_bar(4, shown=True, console=console) as bar:
            bar.update(4, "best 0.25")
            bar.say("waiting")
        drawn: Any = console.file
        assert ("4/4" in drawn.getvalue()) == terminal
        assert ("best 0.25" in drawn.getvalue()) == terminal
        assert "waiting" in drawn.getvalue()


def test_silence() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    with terminal_bar(4, shown=False, console=console) as bar:
        bar.update(1, "best 1")
        bar.say("waiting")
    drawn: Any = console.file
    assert drawn.getvalue() == ""


def test_here_is_no_notebook() -> None:
    assert progress._notebook_display() is None
