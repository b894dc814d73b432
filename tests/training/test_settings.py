import dataclasses
from typing import Any, Literal

import pytest

from amortes.errors import ConfigError
from amortes.training.settings import from_dict, override, setting_names, to_dict


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inner:
    low: int = 1
    high: int = 5
    kind: Literal["a", "b"] = "a"

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ConfigError(f"low: must be at most {self.high}, not {self.low}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outer:
    rate: float
    inner: Inner = Inner()
    pair: tuple[float, float] = (0.9, 0.99)
    sizes: tuple[int, ...] = ()
    on: bool = False
    name: str = "x"
    limit: int | None = None


def test_json_round_trip() -> None:
    config = Outer(rate=0.5, inner=Inner(kind="b"), sizes=(1, 2, 3), limit=7)
    values = to_dict(config)
    assert values["inner"] == {"low": 1, "high": 5, "kind": "b"}
    assert values["sizes"] == [1, 2, 3]
    assert from_dict(Outer, values) == config


def test_missing_fields_take_defaults() -> None:
    assert from_dict(Outer, {"rate": 1}) == Outer(rate=1.0)


@pytest.mark.parametrize(
    ("assignment", "name", "value"),
    [
        ("rate=3e-3", "rate", 3e-3),
        ("rate=2", "rate", 2.0),
        ("pair=0.8,0.95", "pair", (0.8, 0.95)),
        ("sizes=4,5,6", "sizes", (4, 5, 6)),
        ("on=true", "on", True),
        ("on=False", "on", False),
        ("name=a=b", "name", "a=b"),
        ("limit=1e3", "limit", 1000),
        ("limit=none", "limit", None),
        ("limit=12345678901234567", "limit", 12345678901234567),
    ],
)
def test_override_converts_text(assignment: str, name: str, value: Any) -> None:
    changed = getattr(override(Outer(rate=0.1, limit=1), [assignment]), name)
    assert changed == value
    assert type(changed) is type(value)


def test_overrides_take_effect_together() -> None:
    # Each of them alone would contradict the other's default.
    config = override(Outer(rate=0.1), ["inner.low=10", "inner.high=20"])
    assert config.inner == Inner(low=10, high=20)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("rat=1", "rat: no such setting; there are rate, inner.low, inner.high, inner.kind, pair"),
        ("inner.lo=1", "inner.lo: no such setting; there are inner.low, inner.high, inner.kind"),
        ("inner=3", "inner: expected a table of settings, not '3'"),
        ("rate.x=3", "rate: expected a number, not {'x': '3'}"),
        ("rate=fast", "rate: expected a number, not 'fast'"),
        ("limit=1.5", "limit: expected a whole number, not '1.5'"),
        ("on=1", "on: expected true or false, not '1'"),
        ("pair=1", "pair: expected 2 values, not '1'"),
        ("inner.kind=c", "inner.kind: must be one of a, b, not 'c'"),
        ("inner.low=9", "inner.low: must be at most 5, not 9"),
        ("rate", "write name=value"),
    ],
)
def test_wrong_override_is_explained(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        override(Outer(rate=0.1), [assignment])
    assert message in str(error.value)


def test_whole_and_part_contradict() -> None:
    with pytest.raises(ConfigError, match="as a whole and in part"):
        override(Outer(rate=0.1), ["inner=1", "inner.low=2"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "rate"),
        ({"rate": True}, "rate: expected a number, not True"),
        ({"rate": None}, "rate: expected a number"),
        ({"rate": 1, "speed": 2}, "speed: no such setting"),
        ({"rate": 1, "inner": 3}, "inner: expected a table"),
        ({"rate": 1, "inner": {"low": "x"}}, "inner.low: expected a whole number"),
        ({"rate": 1, "pair": 3}, "pair: expected 2 values"),
        ([], "Outer: expected a table"),
    ],
)
def test_wrong_json_is_explained(values: Any, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        from_dict(Outer, values)
    assert message in str(error.value)


def test_setting_names() -> None:
    assert setting_names(Outer(rate=0.1))[:3] == ["rate", "inner.low", "inner.high"]
