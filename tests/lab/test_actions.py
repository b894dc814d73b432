from pathlib import Path

import pytest

from amortes import Categorical, Float, Optimizer
from amortes.lab import actions
from amortes.lab.errors import FormError
from amortes.lab.schemas import Result, Tell
from amortes.lab.study import Study


@pytest.fixture
def study(tmp_path: Path) -> Study:
    kind = Categorical({"a": {"x": Float(0, 1)}, "b": {}})
    path = tmp_path / "run.json"
    Optimizer({"kind": kind, "y": Float(-1, 1)}).save(path)
    study = Study("run.json", path)
    study.adopt()
    return study


def test_values_that_do_not_matter_may_be_left_empty(study: Study) -> None:
    _, trial = actions.add(study, {"kind": "b", "x": "", "y": "−0,5"}, Result(value=1.0))
    assert trial.config == {"kind": "b", "y": -0.5}
    _, trial = actions.add(study, {"kind": "b", "x": "wrong", "y": 0.5}, None)
    assert trial.config == {"kind": "b", "y": 0.5}
    with pytest.raises(FormError, match="x: a value is missing"):
        actions.add(study, {"kind": "a", "x": " ", "y": 0}, None)
    with pytest.raises(FormError, match="There is no parameter z"):
        actions.add(study, {"kind": "b", "y": 0, "z": 1}, None)


def test_an_own_trial_does_not_disturb_the_queue(study: Study) -> None:
    run = Optimizer.load(study.path)
    run.enqueue({"kind": "b", "y": 0.25})
    run.save(study.path)
    _, own = actions.add(study, {"kind": "b", "y": -1}, None)
    assert own.config == {"kind": "b", "y": -1.0}
    _, asked = actions.ask(study, 1)
    assert asked[0].config == {"kind": "b", "y": 0.25}


def test_what_was_expected_stays_after_the_result(study: Study) -> None:
    for y in (-1, -0.5, 0, 0.5):
        actions.add(study, {"kind": "b", "y": y}, Result(value=y**2))
    snapshot, (trial,) = actions.ask(study, 1)
    before = snapshot.about.predictions[trial.number]
    own = Optimizer.load(study.path).predict(trial.config, observation_noise=True)
    assert (before.median, before.lower, before.upper) == (own.median, own.lower, own.upper)
    snapshot, _ = actions.tell(study, trial.number, Tell(value=100.0))
    assert snapshot.about.predictions[trial.number] == before
