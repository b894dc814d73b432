"""Values nobody expects, and numbers at the edges, drawn from a seeded generator."""

import datetime
import decimal
import enum
import fractions
import functools
import math
import random
from typing import Any

import numpy as np
import torch


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


class Hostile:
    """Fails at whatever it is asked."""

    def __float__(self) -> float:
        raise RuntimeError("no float")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __bool__(self) -> bool:
        raise RuntimeError("no bool")

    def __index__(self) -> int:
        raise RuntimeError("no index")


EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-13, 1e-100, 5e-324, 1e99, 1e100, 1.1e100, 1e154, 1e200]
EDGES += [1.7e308, -1e99, -1e308, math.inf, -math.inf, math.nan, 1 + 2e-16, 1e6, 2**53, 2**63]


def number(rng: random.Random) -> Any:
    """A number, often an extreme one, sometimes of another library."""
    x: Any = rng.choice(EDGES) if rng.random() < 0.6 else rng.uniform(-3, 3)
    wrap = rng.randrange(12)
    if wrap == 0:
        return np.float64(x)
    if wrap == 1:
        return torch.tensor(x, dtype=torch.float64)
    if wrap == 2:
        return np.array([x])
    if wrap == 3 and math.isfinite(x):
        return int(x)
    return x


def junk(rng: random.Random, depth: int = 0) -> Any:
    """A value of any type."""
    strange: list[list[Any]] = [
        [None, True, False, "", "x", "0.5", "\ud800", "a" * 5000, "é\0"],
        [b"7", bytearray(b"7"), memoryview(b"7"), 1 + 2j, np.complex64(1j)],
        [10**5000, -(10**400), fractions.Fraction(1, 3), decimal.Decimal("NaN")],
        [Colour.RED, Colour, Hostile(), object(), math.sin, int, lambda: 1],
        [np.ones(2), np.array([]), np.array("7"), np.str_("x"), np.bool_(True)],
        [torch.ones(2), torch.tensor(1j), torch.tensor(1.0, device="meta"), torch.nn.Identity()],
        [np.datetime64("2020"), np.timedelta64(3, "s"), datetime.date(2020, 1, 1)],
        [set(), frozenset({1}), range(3), slice(2), iter([1]), {1: 2}, Ellipsis],
        [nested(3), nested(3000), ValueError("x"), random],
    ]
    makers: list[Any] = [lambda: number(rng)] * 2
    makers += [functools.partial(rng.choice, values) for values in strange]
    if depth < 2:
        makers += [
            lambda: [junk(rng, depth + 1) for _ in range(rng.randrange(4))],
            lambda: tuple(junk(rng, depth + 1) for _ in range(rng.randrange(4))),
            lambda: {rng.choice(["x", "n", "c", "type"]): junk(rng, depth + 1)},
        ]
    return rng.choice(makers)()


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def json_junk(rng: random.Random) -> Any:
    """A value a JSON file may have."""
    makers: list[Any] = [
        lambda: rng.choice([None, True, False, "", "x", "done", "pending", "\ud800", 10**400]),
        lambda: rng.choice(EDGES),
        lambda: rng.randrange(-3, 9),
        lambda: [json_junk(rng) for _ in range(rng.randrange(3))],
        lambda: {rng.choice(["x", "type", "value", ""]): json_junk(rng)},
        lambda: nested(200),
    ]
    return rng.choice(makers)()
