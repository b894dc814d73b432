import io
from pathlib import Path

import click
import pytest
from rich.console import Console

from amortes.bench.results import PlannedRun
from amortes.bench.sweep import Progress
from amortes.cli import console, sweep_options
from amortes.cli.sweep_options import show_failures, sweep_progress

RUN = PlannedRun(problem="branin", method="jes@[x]", seed=3, iterations=9)


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_for_people_and_for_log_files(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = io.StringIO()
    screen = Console(file=text, force_terminal=terminal, width=100)
    monkeypatch.setattr(console, "ERR", screen)
    monkeypatch.setattr(sweep_options, "ERR", screen)
    with sweep_progress() as report:
        report(Progress(done=2, total=4))
        report(Progress(done=3, total=4, run=RUN, failure=Path("f"), seconds_left=3661.2))
    if terminal:
        assert "3/4" in text.getvalue()
        assert "left" in text.getvalue()
    else:
        assert text.getvalue() == "3/4 branin, jes@[x], seed 3: failed; 1:01:01 left\n"


def test_only_the_first_failures_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr(sweep_options, "ERR", Console(file=text, width=200))
    paths = [tmp_path / f"{i}.txt" for i in range(7)]
    for i, path in enumerate(paths):
        path.write_text(f"Traceback\nError: [number] {i}\n")
    show_failures([])
    assert text.getvalue() == ""
    with pytest.raises(click.exceptions.Exit):
        show_failures(paths)
    assert "Error: [number] 4" in text.getvalue()
    assert "number] 5" not in text.getvalue()
    assert "and 2 more" in text.getvalue()
