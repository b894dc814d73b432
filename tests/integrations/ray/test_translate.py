import random
from typing import Any

import pytest
from ray import tune

from amortes.errors import ConfigError, DataError
from amortes.integrations.ray.translate import Translation
from amortes.optimiser import Categorical, Float, Int, Linear, Ordinal, Space

DOMAINS: list[tuple[Any, Any]] = [
    (tune.uniform(-1, 2), Float(-1, 2)),
    (tune.loguniform(1e-4, 1e-1), Float(1e-4, 1e-1, log=True)),
    (tune.quniform(0.2, 1.0, 0.2), Float(0.2, 1.0, step=0.2)),
    (tune.quniform(-3, 3, 1.5), Float(-3, 3, step=1.5)),
    (tune.randint(1, 9), Int(1, 8)),
    (tune.qrandint(4, 12, 4), Int(4, 12, step=4)),
    (tune.lograndint(1, 100), Int(1, 99, log=True)),
    (tune.choice(["a", "b", "c"]), Categorical(["a", "b", "c"])),
    (tune.choice([64, 16, 32, 16]), Ordinal([16, 32, 64])),
    (tune.choice([True, False]), Categorical([True, False])),
    (tune.choice([(1, 2), None]), Categorical([(1, 2), None])),
    (Float(0, 1), Float(0, 1)),
]


@pytest.mark.parametrize(("given", "expected"), DOMAINS, ids=range(len(DOMAINS)))
def test_domains(given: Any, expected: Any) -> None:
    assert Translation.of({"p": given}, constants=False).space.parameters == {"p": expected}


SAMPLED = [domain for domain, _ in DOMAINS[:-1]]
SAMPLED += [tune.qloguniform(1e-3, 1, 5e-4), tune.qlograndint(8, 96, 8)]


@pytest.mark.parametrize("domain", SAMPLED, ids=range(len(SAMPLED)))
def test_what_tune_samples_is_in_the_space(domain: Any) -> None:
    translation = Translation.of({"p": domain}, constants=False)
    for _ in range(100):
        sampled = {"p": domain.sample()}
        assert translation.config(translation.read(sampled))["p"] == pytest.approx(sampled["p"])


@pytest.mark.parametrize(
    ("domain", "multiple"),
    [(tune.qloguniform(1e-3, 1, 5e-4), 5e-4), (tune.qlograndint(8, 99, 8), 8)],
)
def test_values_on_a_logarithmic_scale_are_rounded(domain: Any, multiple: float) -> None:
    translation = Translation.of({"p": domain}, constants=False)
    (parameter,) = translation.space.free.values()
    rng = random.Random(0)
    for _ in range(50):
        value = translation.config({"p": parameter.decode([rng.random()])})["p"]
        assert value / multiple == pytest.approx(round(value / multiple), abs=1e-9)
        assert domain.is_valid(value)
        assert len(str(value)) < 8  # no 0.0035000000000000005


NESTED: dict[str, Any] = {
    "x": tune.uniform(0, 1),
    "net": {"n": tune.randint(1, 5), "act": tune.choice(["relu"]), "bias": True},
    "data": [1, 2],
}


def test_nested_spaces() -> None:
    translation = Translation.of(NESTED, constants=False)
    assert list(translation.space.parameters) == ["x", "net/n"]
    # Tune adds constants by itself, but does not know what a search makes of its domains.
    config = {"x": 0.5, "net": {"n": 2, "act": "relu"}}
    assert translation.config({"x": 0.5, "net/n": 2}) == config
    assert translation.read(config | {"data": [1, 2], "other": 3}) == {"x": 0.5, "net/n": 2}
    whole = Translation.of(NESTED, constants=True).config({"x": 0.5, "net/n": 2})
    assert whole == {"x": 0.5, "net": {"n": 2, "act": "relu", "bias": True}, "data": [1, 2]}


def test_spaces_of_ours() -> None:
    space = Space({"x": Float(0, 1), "k": 3}, [Linear({"x": 1}, 0.5)])
    translation = Translation.of(space, constants=True)
    assert translation.space is space
    assert translation.config({"x": 0.1, "k": 3}) == {"x": 0.1, "k": 3}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (3, "expected a dict of parameters, not 3"),
        ({"a": {"b": tune.grid_search([1, 2])}}, "a/b: a search does not go through a grid"),
        ({"a": tune.randn(0, 1)}, "a: .* has no bounds that could be searched"),
        ({"a": tune.sample_from(lambda spec: 1)}, "a: .* has no bounds that could be searched"),
        ({"a": 1}, "nothing varies"),
        ({"a/b": tune.uniform(0, 1), "a": {"b": tune.uniform(0, 1)}}, "a/b: two parameters"),
    ],
)
def test_what_cannot_be_searched(given: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Translation.of(given, constants=False)


@pytest.mark.parametrize(
    "config", [{}, {"x": 0.5}, {"x": 0.5, "net": 3}, {"x": 2, "net": {"n": 1}}]
)
def test_configs_that_are_not_of_the_space(config: Any) -> None:
    with pytest.raises(DataError):
        Translation.of(NESTED, constants=False).read(config)
