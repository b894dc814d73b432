from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, create_trial

from amortes.integrations.optuna.structure import Structure
from amortes.optimiser.conditions import Condition

ALL: dict[str, BaseDistribution] = {
    "kind": CategoricalDistribution(["svm", "forest", "none"]),
    "kernel": CategoricalDistribution(["rbf", "poly"]),
    "gamma": FloatDistribution(0, 1),
    "C": FloatDistribution(1e-3, 1, log=True),
    "depth": IntDistribution(1, 9),
    "batch": IntDistribution(1, 64),
    "one": IntDistribution(1, 1),
}


def trials(*params: dict[str, Any], **other: BaseDistribution) -> list[FrozenTrial]:
    made = []
    for number, values in enumerate(params):
        distributions = {name: (ALL | other)[name] for name in values}
        made.append(create_trial(value=0.0, params=values, distributions=distributions))
        made[-1].number = number
    return made


def test_without_conditions() -> None:
    structure = Structure.learn(trials({"C": 0.1, "one": 1}, {"C": 0.2, "one": 1}))
    assert structure == Structure({"C": ALL["C"]}, {})
    assert Structure.learn([]) == Structure({}, {})
    assert Structure.learn([], {"C": ALL["C"]}) == structure


def test_nested_conditions_are_found() -> None:
    rbf = {"kind": "svm", "kernel": "rbf", "C": 0.1, "gamma": 0.5}
    poly = {"kind": "svm", "kernel": "poly", "C": 0.1}
    forest, none = {"kind": "forest", "depth": 3}, {"kind": "none"}
    structure = Structure.learn(trials(rbf, forest, poly, none, forest, rbf))
    assert structure.conditions == {
        "kernel": Condition("kind", (0.0,)),
        "C": Condition("kind", (0.0,)),
        "gamma": Condition("kernel", (0.0,)),
        "depth": Condition("kind", (1.0,)),
    }
    names = list(structure.distributions)
    assert names.index("kind") < names.index("kernel") < names.index("gamma")
    assert structure.shared == Structure({"kind": ALL["kind"]}, {})


def test_chance_is_told_from_repetition() -> None:
    # batch was never the same with and without depth, but neither was it ever repeated.
    seen = [
        {"batch": b, "kind": "forest", "depth": 2} if b % 2 else {"batch": b, "kind": "none"}
        for b in range(1, 9)
    ]
    assert Structure.learn(trials(*seen)).conditions["depth"].parent == "kind"


def test_what_depends_on_nothing_known_is_left_out() -> None:
    seen = [{"C": 0.1, "kind": "svm"}, {"C": 0.2, "kind": "svm", "depth": 3}]
    assert set(Structure.learn(trials(*seen)).distributions) == {"C", "kind"}


def test_ranges_that_changed_are_left_out() -> None:
    seen = [
        *trials({"C": 0.1, "depth": 3}),
        *trials({"C": 0.1, "depth": 3}, depth=IntDistribution(1, 5)),
    ]
    assert set(Structure.learn(seen).distributions) == {"C"}


def test_only_candidates_are_looked_at() -> None:
    seen = trials({"kind": "forest", "depth": 3, "C": 0.1}, {"kind": "none", "C": 0.1})
    assert set(Structure.learn(seen, {"C": ALL["C"], "depth": ALL["depth"]}).distributions) == {"C"}


def test_parameters_can_be_taken_out() -> None:
    structure = Structure.learn(trials({"kind": "forest", "depth": 3}, {"kind": "none"}))
    assert structure.without({"depth"}) == structure.shared
