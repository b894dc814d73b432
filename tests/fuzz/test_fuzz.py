"""2,000 inputs nobody would think of: refused by an `AmortesError`, or taken without harm."""

import random
import time

import pytest

from tests.fuzz import targets
from tests.fuzz.run import fuzz, patience


def test_two_thousand_inputs() -> None:
    counts, defects = fuzz(0, 2000)
    assert not defects, f"{len(defects)} defects, the first of them:\n\n{defects[0]}"
    # Neither refuses all, nor takes all; what is told before an `ask` may all be fine.
    seen = {f"{name}: {end}" for name in targets.TARGETS for end in ("taken", "refused")}
    assert set(counts) >= seen - {"ask: refused"}


def test_an_input_is_the_same_each_time() -> None:
    assert [targets.run(3, i) for i in range(40)] == [targets.run(3, i) for i in range(40)]


def test_defects_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(rng: random.Random) -> None:
        raise ZeroDivisionError(str(rng.random()))

    monkeypatch.setattr(targets, "TARGETS", {"broken": (broken, 1)})
    counts, defects = fuzz(0, 3)
    assert not counts
    assert len(defects) == 3
    assert all("ZeroDivisionError" in defect for defect in defects)


def test_what_hangs_is_stopped() -> None:
    with pytest.raises(TimeoutError, match=r"not done after 0\.01 seconds"), patience(0.01):
        time.sleep(60)
