from pathlib import Path
from typing import Any

import pytest

from amortes import Categorical, Float, Optimizer
from amortes.lab import actions
from amortes.lab.errors import FormError
from amortes.lab.schemas import Ask, OwnTrial, Result, Tell
from amortes.lab.study import Study


@pytest.fixture
def study(tmp_path: Path) -> Study:
    kind = Categorical({"a": {"x": Float(0, 1)}, "b": {}})
    path = tmp_path / "run.json"
    Optimizer({"kind": kind, "y": Float(-1, 1)}).save(path)
    study = Study("run.json", path)
    study.adopt()
    return study


def add(study: Study, config: dict[str, Any], value: float | None = None) -> dict[str, Any]:
    result = None if value is None else Result(value=value)
    told = actions.add(study, OwnTrial(config=config, result=result), None)
    assert told.trial is not None
    return told.trial.config


def test_values_that_do_not_matter_may_be_left_empty(study: Study) -> None:
    assert add(study, {"kind": "b", "x": "", "y": "−0,5"}, 1.0) == {"kind": "b", "y": -0.5}
    assert add(study, {"kind": "b", "x": "wrong", "y": 0.5}) == {"kind": "b", "y": 0.5}
    with pytest.raises(FormError, match="x: a value is missing"):
        add(study, {"kind": "a", "x": " ", "y": 0})
    with pytest.raises(FormError, match="There is no parameter z"):
        add(study, {"kind": "b", "y": 0, "z": 1})


def test_an_own_trial_does_not_disturb_the_queue(study: Study) -> None:
    run = Optimizer.load(study.path)
    run.enqueue({"kind": "b", "y": 0.25})
    run.save(study.path)
    assert add(study, {"kind": "b", "y": -1}) == {"kind": "b", "y": -1.0}
    (asked,) = actions.ask(study, Ask(), None).trials
    assert asked.config == {"kind": "b", "y": 0.25}


def test_what_was_expected_stays_after_the_result(study: Study) -> None:
    for y in (-1, -0.5, 0, 0.5):
        add(study, {"kind": "b", "y": y}, y**2)
    (trial,) = actions.ask(study, Ask(), None).trials
    before = trial.predicted
    assert before is not None
    own = Optimizer.load(study.path).predict(trial.config, observation_noise=True)
    assert (before.median, before.lower, before.upper) == (own.median, own.lower, own.upper)
    actions.tell(study, trial.number, Tell(value=100.0), None)
    assert study.read().about.predictions[trial.number] == before
