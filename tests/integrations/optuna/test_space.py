from typing import Any

import pytest
import torch
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, create_trial

from amortes.errors import ConfigError
from amortes.integrations.optuna.space import Structure, Translation, constant
from amortes.optimiser import Categorical, Float, Int
from amortes.optimiser.choices import Parameter
from amortes.optimiser.conditions import Condition
from amortes.optimiser.design import sample
from amortes.random import generator

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


def one(distribution: BaseDistribution) -> Translation:
    return Translation(Structure({"x": distribution}, {}))


DISTRIBUTIONS: list[tuple[BaseDistribution, Parameter]] = [
    (FloatDistribution(-2.0, 3.0), Float(-2.0, 3.0)),
    (FloatDistribution(1e-5, 1.0, log=True), Float(1e-5, 1.0, log=True)),
    (FloatDistribution(-1.0, 1.0, step=0.1), Int(0, 20)),
    (FloatDistribution(0.1, 0.7, step=0.2), Int(0, 3)),
    (IntDistribution(-3, 8), Int(0, 11)),
    (IntDistribution(3, 9, step=3), Int(0, 2)),
    (IntDistribution(2, 1000, log=True), Int(2, 1000, log=True)),
    (IntDistribution(0, 2**60), Float(0, 2**60)),
    (IntDistribution(1, 2**60, log=True), Float(1, 2**60, log=True)),
    (CategoricalDistribution(["a", None, 1.5, True]), Categorical([0, 1, 2, 3])),
]


@pytest.mark.parametrize(("distribution", "parameter"), DISTRIBUTIONS)
def test_round_trip(distribution: BaseDistribution, parameter: Parameter) -> None:
    translation = one(distribution)
    assert translation.space.parameters == {"x": parameter}
    X = sample(translation.space, 30, generator(0))
    for x in torch.cat([X, translation.space.project(X[:2].round())]):  # the ends, too
        params = translation.to_params(translation.space.decode(x))
        # As Optuna checks, stores and returns it.
        internal = distribution.to_internal_repr(params["x"])
        assert distribution._contains(internal)
        stored = distribution.to_external_repr(internal)
        assert stored == params["x"]
        assert type(stored) is type(params["x"])
        assert translation.to_params(translation.to_values({"x": stored})) == params


def test_steps_cover_the_range_to_its_ends() -> None:
    translation = one(FloatDistribution(0.1, 0.7, step=0.2))
    params = [translation.to_params({"x": k})["x"] for k in range(4)]
    assert params == pytest.approx([0.1, 0.3, 0.5, 0.7])
    assert params[-1] <= 0.7


@pytest.mark.parametrize(
    ("distribution", "value"),
    [
        (FloatDistribution(0.0, 1.0), 1.5),
        (FloatDistribution(0.0, 1.0, step=0.25), 0.3),
        (FloatDistribution(0.0, 1.0, step=0.25), 1.25),
        (IntDistribution(0, 10, step=2), 3),
        (IntDistribution(1, 10, log=True), 11),
        (CategoricalDistribution(["a", "b"]), "c"),
    ],
)
def test_values_outside_are_refused(distribution: BaseDistribution, value: object) -> None:
    with pytest.raises(ValueError, match=r"outside|whole number|not in"):
        one(distribution).to_values({"x": value})


@pytest.mark.parametrize(
    ("distribution", "value"),
    [
        (FloatDistribution(2.0, 2.0), 2.0),
        (IntDistribution(3, 3), 3),
        (CategoricalDistribution(["a"]), "a"),
    ],
)
def test_constants(distribution: BaseDistribution, value: object) -> None:
    assert constant(distribution) == value


def test_unknown_distributions_are_said() -> None:
    class Strange(BaseDistribution):
        def to_internal_repr(self, param_value_in_external_repr: object) -> float:
            return 0.0

        def single(self) -> bool:
            return False

        def _contains(self, param_value_in_internal_repr: float) -> bool:
            return True

    with pytest.raises(ConfigError, match="cannot sample from Strange"):
        one(Strange())
    with pytest.raises(ConfigError, match="cannot sample from Strange"):
        constant(Strange())


def test_only_active_parameters_are_translated_back() -> None:
    structure = Structure(
        {"kind": CategoricalDistribution("abc"), "n": IntDistribution(10, 30, step=10)},
        {"n": Condition("kind", (0.0, 2.0))},
    )
    assert params_of(Translation(structure)) == [
        *({"kind": "a", "n": n} for n in (10, 20, 30)),
        {"kind": "b"},
        *({"kind": "c", "n": n} for n in (10, 20, 30)),
    ]


def test_conditions_on_steps() -> None:
    structure = Structure(
        {"n": IntDistribution(10, 30, step=10), "c": CategoricalDistribution("ab")},
        {"c": Condition("n", (20.0,))},
    )
    expected = [{"n": 10}, {"n": 20, "c": "a"}, {"n": 20, "c": "b"}, {"n": 30}]
    assert params_of(Translation(structure)) == expected


def params_of(translation: Translation) -> list[dict[str, object]]:
    """All there are."""
    assert translation.space.points is not None
    return [translation.to_params(translation.space.decode(x)) for x in translation.space.points]
