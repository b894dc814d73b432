from rich.console import Console

from amortes.command.view import ROWS, WIDTH, best_so_far, describe, show, sparkline
from amortes.optimiser import Trial
from amortes.optimiser.trials import Status


def trial(number: int, value: float | None = None, reason: str | None = None) -> Trial:
    status: Status = "failed" if reason else "pending" if value is None else "done"
    config = {"lr": 0.0001234567, "act": "[red]"}
    return Trial(number, config, status, value, reason=reason)


def text(trials: list[Trial], seconds: dict[int, float] | None = None, past: int = 0) -> str:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(show(trials, seconds or {}, past=past, total=50, goal="minimize"))
    return capture.get()


def test_the_best_so_far() -> None:
    trials = [trial(0, 3.0), trial(1, reason="x"), trial(2, 1.0), trial(3), trial(4, 2.0)]
    assert best_so_far(trials, "minimize") == [3.0, 1.0, 1.0]
    assert best_so_far(trials, "maximize") == [3.0, 3.0, 3.0]


def test_sparklines() -> None:
    assert sparkline([]) == ""
    assert sparkline([0.0, 0.5, 1.0]) == "▁▅█"
    assert sparkline([2.0, 2.0]) == "▁▁"
    long = sparkline([float(i) for i in range(10 * WIDTH)])
    assert len(long) == WIDTH
    assert list(long) == sorted(long)


def test_the_view_shows_what_matters() -> None:
    failed = trial(1, reason="exit code 1: [bold]oops")
    shown = text([trial(0, 0.123456789), failed, trial(2), trial(3)], {2: 61.0})
    for words in ("2 of 50 trials", "1 failed", "best 0.12346", "0.00012346", "[red]", "61 s",
                  "exit code 1: [bold]oops", "waiting"):  # fmt: skip
        assert words in shown
    assert "0 of 50 trials" in text([])


def test_past_results_count_for_the_best_only() -> None:
    shown = text([trial(10, 0.25), trial(11, reason="lost"), trial(12, 4.0)], past=2)
    assert "1 of 50 trials" in shown
    assert "best 0.25" in shown
    assert "lost" not in shown


def test_only_the_newest_trials_are_shown() -> None:
    shown = text([trial(100 + i, float(i)) for i in range(ROWS + 1)])
    assert "101" in shown
    assert " 100 " not in shown


def test_one_line_per_trial() -> None:
    assert describe(trial(3, 0.5)) == "trial 3: 0.5  (lr=0.00012346 act=[red])"
    failed = trial(4, reason="exit code 1")
    assert describe(failed) == "trial 4: failed, exit code 1  (lr=0.00012346 act=[red])"
