import json
import math
import signal
from pathlib import Path

import pytest

from amortes.command.outcome import (
    STDERR,
    STDOUT,
    Answer,
    ResultFile,
    Sources,
    last_line,
    read_value,
)
from amortes.errors import ConfigError
from amortes.optimiser.limits import AmortesWarning


def answer(folder: Path, out: str, err: str = "", code: int = 0) -> Answer:
    (folder / STDOUT).write_text(out)
    (folder / STDERR).write_text(err)
    return read_value(folder, code, None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.31", 0.31),
        ("epoch 1\n-1e-3\n\n  \n", -1e-3),
        ("loss: 0.31\n", 0.31),
        ("val_loss=2", 2.0),
        ("loss 0.31", 0.31),
        ("val/loss  -3e-2", -0.03),
        ("test loss (mean) = +4.5e2", 450.0),
        ("f1: 0.8", 0.8),
        ("f1:0.8", 0.8),
        ("epoch 30: 0.25", 0.25),
        ("10%\r50%\r100%\r0.25", 0.25),
        ("loss: inf", math.inf),
        ("x" * 100_000 + "\n7", 7.0),
    ],
)
def test_numbers_on_the_last_line(tmp_path: Path, text: str, value: float) -> None:
    assert answer(tmp_path, text) == Answer(value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it printed nothing, but its last line should be a number"),
        ("\n \n", "it printed nothing, but its last line should be a number"),
        ("0.3\nbye", "its last line is 'bye', not a number"),
        ("saved to run 3", "its last line is 'saved to run 3', not a number"),
        ("epoch 3 of 10", "its last line is 'epoch 3 of 10', not a number"),
        ("0.1 0.2", "its last line is '0.1 0.2', not a number"),
        ("loss 0.3 s", "its last line is 'loss 0.3 s', not a number"),
        ("12:30:05", "its last line is '12:30:05', not a number"),
        ("finished at 12:30", "its last line is 'finished at 12:30', not a number"),
        ("2026-01-31 9:05", "its last line is '2026-01-31 9:05', not a number"),
    ],
)
def test_no_number(tmp_path: Path, text: str, reason: str) -> None:
    assert answer(tmp_path, text) == Answer(reason=reason)


def test_not_a_number_is_a_number_nobody_wants(tmp_path: Path) -> None:
    value = answer(tmp_path, "loss: nan").value
    assert value is not None
    assert math.isnan(value)


def test_failed_commands(tmp_path: Path) -> None:
    failed = answer(tmp_path, "0.3", "Traceback\nOSError: disk\n", code=2)
    assert failed == Answer(reason="exit code 2: OSError: disk")
    assert answer(tmp_path, "0.3", code=1) == Answer(reason="exit code 1")
    killed = answer(tmp_path, "", code=-signal.SIGKILL)
    assert killed == Answer(reason="killed by SIGKILL")
    assert answer(tmp_path, "", code=-200).reason == "killed by signal 200"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"loss": 0.5}', Answer(0.5)),
        ('{"loss": 3}', Answer(3.0)),
        ('{"los": 0.5}', Answer(reason="r.json has no loss")),
        ("[1]", Answer(reason="r.json has no loss")),
        ('{"loss": "low"}', Answer(reason='loss in r.json is "low", not a number')),
        ('{"loss": true}', Answer(reason="loss in r.json is true, not a number")),
        (f'{{"loss": {10**400}}}', Answer(reason="loss in r.json is too large a number")),
        (None, Answer(reason="it wrote no r.json to its trial folder")),
    ],
)
def test_json_files(tmp_path: Path, text: str | None, found: Answer) -> None:
    if text is not None:
        (tmp_path / "r.json").write_text(text)
    assert read_value(tmp_path, 0, ResultFile.parse("r.json:loss")) == found


def test_keys_go_deeper_and_damage_is_reported(tmp_path: Path) -> None:
    file = ResultFile.parse("out/r.json:test.loss")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "r.json").write_text('{"test": {"loss": 1.5}}')
    assert file.read(tmp_path) == Answer(1.5)
    for damaged in ('{"test": ', "[" * 100_000, "1" * 5000):
        (tmp_path / "out" / "r.json").write_text(damaged)
        assert "not valid JSON" in (file.read(tmp_path).reason or "")


def test_outputs_that_are_gone(tmp_path: Path) -> None:
    gone = tmp_path / "trial"
    reason = "it removed stdout.txt, the last line of which should be a number"
    assert read_value(gone, 0, None) == Answer(reason=reason)
    assert read_value(gone, 3, None) == Answer(reason="exit code 3")
    assert last_line(gone / STDOUT) is None


@pytest.mark.parametrize("text", ["result.json", ":loss", "r.json:", "r.json:a..b"])
def test_files_without_key(text: str) -> None:
    with pytest.raises(ConfigError, match="expected FILE:KEY such as"):
        ResultFile.parse(text)


@pytest.mark.parametrize("text", ["/tmp/r.json:loss", "../r.json:loss"])
def test_files_elsewhere(text: str) -> None:
    with pytest.raises(ConfigError, match="must be in the trial folder"):
        ResultFile.parse(text)


@pytest.mark.parametrize("name", ["result", "cost", "violation"])
def test_the_option_that_is_wrong_is_named(name: str) -> None:
    options = {"result": None, "cost": None, "violation": None} | {name: "r.json"}
    with pytest.raises(ConfigError, match=f"^{name}: expected FILE:KEY"):
        Sources.parse(*options.values())


def sources(folder: Path, cost: str | None = None, **numbers: object) -> Answer:
    """What is read of r.json with these numbers, of which the violation is looked at."""
    (folder / "r.json").write_text(json.dumps(numbers))
    found = Sources.parse("r.json:loss", cost, "r.json:over")
    return found.read(folder, 0, 2.5)


def test_costs_and_violations(tmp_path: Path) -> None:
    assert sources(tmp_path, loss=1, over=-3) == Answer(1.0, violation=-3.0)
    assert sources(tmp_path, "seconds", loss=1, over=2) == Answer(1.0, cost=2.5, violation=2.0)
    found = sources(tmp_path, "r.json:price", loss=1, over=0, price=7)
    assert found == Answer(1.0, cost=7.0, violation=0.0)
    assert Sources.parse(None, None, None) == Sources()


def test_a_value_counts_only_if_it_is_known_to_be_allowed(tmp_path: Path) -> None:
    assert sources(tmp_path, loss=1) == Answer(reason="r.json has no over")
    assert sources(tmp_path, loss=1, over=math.nan) == Answer(reason="its violation is nan")
    # Where there is no value, a violation says why.
    assert sources(tmp_path, over=3) == Answer(reason="r.json has no loss", violation=3.0)


def test_a_value_without_a_cost_is_kept(tmp_path: Path) -> None:
    for price, why in ((0, "0 is not a positive number"), (None, "price in r.json is null")):
        with pytest.warns(AmortesWarning, match=f"without its cost: {why}"):
            found = sources(tmp_path, "r.json:price", loss=1, over=0, price=price)
        assert found == Answer(1.0, violation=0.0)


def test_failures_have_costs_too(tmp_path: Path) -> None:
    (tmp_path / STDERR).write_text("no memory")
    found = Sources.parse(None, "seconds", None).read(tmp_path, 1, 4.0)
    assert found == Answer(reason="exit code 1: no memory", cost=4.0)
    found = Sources.parse(None, "r.json:price", None).read(tmp_path, 1, 4.0)
    assert found == Answer(reason="exit code 1: no memory")


def test_long_lines_are_shortened(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a" * 1000 + "end")
    line = last_line(tmp_path / "x")
    assert line is not None
    assert line.endswith("end")
    assert len(line) == 200
