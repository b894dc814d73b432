import enum
import json
from pathlib import Path

import pytest

from amortes import Categorical, Float, Optimizer, Space
from amortes.lab.errors import ReadOnlyError
from amortes.lab.foreign import readable
from amortes.lab.study import Study


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def test_a_run_that_its_file_does_not_hold_can_be_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    space = Space(
        {"x": Float(0, 1), "colour": Categorical(list(Colour))},
        constraints=[lambda config: config["x"] < 0.5],
    )
    run = Optimizer(space, cost=lambda config: 2.0)
    run.tell({"x": 0.25, "colour": Colour.BLUE}, 1.0)
    run.ask()
    run.save(path)
    snapshot = Study("run.json", path).read()
    assert snapshot.lacks == [
        "a cost function",
        "a constraint that is a function",
        "choices that are objects",
    ]
    assert [trial.config["x"] for trial in snapshot.trials] == [t.config["x"] for t in run.trials]
    assert "BLUE" in snapshot.trials[0].config["colour"]
    with pytest.raises(ReadOnlyError, match="cost function and a constraint"):
        Study("run.json", path).adopt()


def test_what_a_file_can_hold_stays_as_it_is() -> None:
    state = Optimizer({"x": Float(0, 1)}).state
    state = json.loads(json.dumps(state))
    assert readable(state) == (state, [])


@pytest.mark.parametrize("state", [None, [], "x", {}, {"space": 3}, {"space": {"parameters": []}}])
def test_what_is_no_state_is_left_to_others(state: object) -> None:
    assert readable(state) == (state, [])
