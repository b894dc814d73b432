"""What is fuzzed: each function hands one input, drawn from a seeded generator, to amortes.

It may raise an `AmortesError`. Any other exception, a number that is not finite or a config that
is not of its space is a defect.
"""

import contextlib
import copy
import functools
import json
import math
import random
import struct
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from amortes.errors import AmortesError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import (
    Allowed,
    AmortesWarning,
    Categorical,
    Float,
    Int,
    Linear,
    Optimizer,
    Ordinal,
    Space,
    Trial,
)
from amortes.pretrained import DEFAULT, weights_path
from amortes.prior.gp import named_prior
from amortes.random import generator
from amortes.training.export import load_network
from amortes.training.tensorfile import _checksum
from tests.fuzz.values import Colour, json_junk, junk, number
from tests.optimiser.conftest import untrained

MIXED = {"x": Float(-1, 1), "n": Int(1, 9, log=True), "c": Categorical(["a", [1], None]), "k": 5}
NETWORK = DEFAULT


@functools.cache
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))


def optimizer(space: Any = MIXED, **settings: Any) -> Optimizer:
    chosen: dict[str, Any] = {"network": network(), "acquisition": "logei"} | settings
    return Optimizer(space, **chosen)


def config(rng: random.Random, space: Space) -> Any:
    """A config of a space, or one with something wrong."""
    point = torch.tensor([rng.random() for _ in range(space.d)], dtype=torch.float64)
    made: Any = space.decode(point)
    if rng.random() < 0.2:
        made[rng.choice([*made, "other"])] = junk(rng)
    return made if rng.random() < 0.95 else junk(rng)


def check_run(opt: Optimizer) -> None:
    """Nothing a run has recorded is NaN or outside its space, and it can be saved."""
    for trial in opt.trials:
        assert opt.space.check(trial.config) == trial.config
        for told in (trial.value, trial.cost, trial.violation):
            assert told is None or (type(told) is float and math.isfinite(told)), trial
        assert (trial.value is not None) == (trial.status == "done"), trial
    json.dumps(opt.state, allow_nan=False)


def tell(rng: random.Random) -> None:
    """Results of any kind."""
    opt = optimizer(initial=99)
    trials: list[Any] = [opt.ask() for _ in range(2)]
    trials += [config(rng, opt.space) for _ in range(4)]
    trials += [Trial(rng.choice([0, 1, junk(rng)]), rng.choice([trials[0].config, junk(rng)]))]
    trials += [junk(rng)]
    keywords = {"cost": junk, "failed": junk, "reason": junk, "violation": number}
    chosen: dict[str, Any] = {k: v(rng) for k, v in keywords.items() if rng.random() < 0.15}
    try:
        opt.tell(rng.choice(trials), junk(rng) if rng.random() < 0.3 else number(rng), **chosen)
    finally:
        check_run(opt)
    rng.choice([opt.withdraw, opt.enqueue])(rng.choice(trials))
    check_run(opt)


def settings(rng: random.Random) -> None:
    """Arguments of an `Optimizer` and of `ask`."""
    start = [junk(rng), (config(rng, Space(MIXED)), number(rng)), config(rng, Space(MIXED))]
    chosen = {
        "goal": rng.choice(["minimize", "maximize", junk(rng)]),
        "seed": rng.choice([0, 2**62, junk(rng)]),
        "initial": rng.choice([None, 3, junk(rng)]),
        "acquisition": rng.choice(["logei", "jes", junk(rng)]),
        "start": rng.choice([[], start[1:], start, junk(rng)]),
        "network": rng.choice([network(), junk(rng)]),
        "cost": rng.choice([None, junk(rng)]),
    }
    name = rng.choice(list(chosen))
    if name in ("start", "cost") and callable(chosen[name]):
        return  # what a function of the user raises is the user's
    opt = optimizer(**{name: chosen[name]})
    count = rng.choice([1, 3, junk(rng)])
    if not (isinstance(count, int) and count > 100):
        opt.ask(count)
    check_run(opt)


def table(rng: random.Random) -> None:
    """Tables of results."""
    header = ["x", "n", "c", "value", *rng.sample(["cost", "status", "violation", "k", "z"], 2)]
    cells = ["0.5", "2", '"a"', "a", "[1]", "", "nan", "inf", "1e400", "done", "failed", "-1", "é"]
    cells += ["pending", "null", "0" * 5000, "5", "\0", '"']
    rows = [[rng.choice(cells) for _ in header] for _ in range(rng.randrange(4))]
    good = [["0.5", "2", "a", "1.5", "", ""] for _ in range(rng.randrange(3))]
    lines = [",".join(row[: rng.choice([99, 99, 3])]) for row in [header, *good, *rows]]
    opt = optimizer()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / rng.choice(["run.csv", "run.parquet"])
        path.write_text("\n".join(lines), encoding=rng.choice(["utf-8", "utf-16", "utf-8-sig"]))
        try:
            opt.tell_frame(path)
        finally:
            check_run(opt)
    opt.to_frame()


def ask(rng: random.Random) -> None:
    """Suggestions, recommendations and predictions after results of any size."""
    spaces: list[Callable[[], Any]] = [
        lambda: {"x": Float(0, 1)},
        lambda: {"x": Float(1e-300, 1e300, log=True), "n": Int(-(2**47), 2**47)},
        lambda: {"x": Float(-8e307, 8e307), "c": Categorical([True, 1, "1"])},
        lambda: {"x": Float(1.0, 1.0 + 1e-12), "y": Float(5e-324, 1e-300)},
        lambda: Space({"x": Float(0, 1), "y": Float(0, 1)}, [Linear({"x": 1, "y": 1}, 1e-4)]),
        lambda: Space({"x": Float(0, 1)}, pool=[{"x": 0.0}, {"x": 5e-324}, {"x": 1.0}]),
    ]
    opt = optimizer(rng.choice(spaces)(), goal=rng.choice(["minimize", "maximize"]), initial=2)
    size, shift = 10.0 ** rng.uniform(-120, 99), rng.choice([0.0, 1.0, 1e90, -1e15])
    for _ in range(rng.randrange(1, 6)):
        trial = opt.ask()
        value = rng.choice([shift + size * rng.random(), shift, number(rng)])
        violation = number(rng) if rng.random() < 0.1 else None
        try:
            opt.tell(trial, value, violation=violation)
        except AmortesError:
            opt.withdraw(trial)
    check_run(opt)
    assert opt.space.allows(opt.ask().config)
    recommended = opt.recommend()
    assert opt.space.allows(recommended.config)
    numbers = (recommended.mean, recommended.lower, recommended.upper)
    assert all(map(math.isfinite, numbers)), numbers
    assert recommended.lower <= recommended.upper
    assert opt.expected_gain() >= 0
    total = sum(opt.importance().values())
    assert total == 0.0 or math.isclose(total, 1.0, rel_tol=1e-6)
    str(opt), opt._repr_html_()


def parameter(rng: random.Random) -> Any:
    """A parameter at the edges of what there may be, or beyond."""
    numbers: list[Any] = [number(rng) if rng.random() < 0.8 else junk(rng) for _ in range(2)]
    if rng.random() < 0.8:
        numbers = sorted(rng.choice([1e-300, 1e-3, 1.0, 1e3, 1e300]) * rng.random() for _ in "ab")
    keywords = {"log": rng.choice([True, False]), "step": rng.choice([1, 0.1, number(rng)])}
    if rng.random() < 0.1:
        keywords = {"log": junk(rng), "step": junk(rng)}
    chosen = {k: v for k, v in keywords.items() if rng.random() < 0.2}
    kind = rng.randrange(6)
    if kind == 0:
        return Float(*numbers, **chosen)
    if kind == 1:
        low = rng.randrange(-(10**6), 10**6)
        return Int(low, low + rng.randrange(1, 10**6), **chosen)
    if kind == 2:
        return Int(*(rng.choice([x, int(rng.uniform(-9, 9))]) for x in numbers), **chosen)
    values: list[Any] = ["a", "b", 1, 1.5, True, None, [1], {"a": 2}, (1, 2), Colour.RED, 2**70]
    choices = rng.sample(values, rng.randrange(2, 6))
    if rng.random() < 0.2:
        choices[0] = junk(rng)
    return rng.choice([Ordinal, Categorical])(choices if rng.random() < 0.95 else junk(rng))


def branches(rng: random.Random, depth: int = 0) -> Any:
    """A parameter, often with parameters below its choices."""
    if depth == 2 or rng.random() < 0.4:
        return parameter(rng)
    keys: list[Any] = ["u", "v", 1, True, None, (1, 2), Colour.RED]
    below: dict[Any, Any] = {}
    for key in rng.sample(keys, rng.randrange(1, 4)):
        names = rng.sample("pqrst", rng.randrange(3))
        below[key] = {f"{name}{depth}": branches(rng, depth + 1) for name in names}
        if rng.random() < 0.1:
            below[key] = rng.choice([None, {"z": 3}, {"z": "b"}, {junk_key(rng): 1}, junk(rng)])
    return Categorical(below)


def junk_key(rng: random.Random) -> Any:
    """Anything that can be a key."""
    key = junk(rng)
    with contextlib.suppress(Exception):
        hash(key)
        return key
    return 3


def condition(rng: random.Random) -> Any:
    """A text or a function that might be a constraint."""
    words = "x y k p0 q0 r0 ( ) [ ] , + - * / ** < <= == in not and or 1 0.5 'u' None sqrt(x) . if"
    texts = ["x < 0.9", "y <= k or x > 0.1", "p0 != 'u'", "q0 < 1 and x > 0", "x in [0.5, 1]"]
    texts.append(" ".join(rng.choices(words.split(), k=rng.randrange(1, 8))))
    answer = rng.choice([True, np.bool_(True), junk(rng)])
    functions = [lambda values: values["x"] < 0.9, lambda values: answer]
    vectorised = [Allowed(function, vectorized=True) for function in functions]
    return rng.choice([*texts, *functions, *vectorised, junk(rng)])


def conditional(rng: random.Random) -> None:
    """Spaces with branches, and constraints of any kind."""
    constraints = [condition(rng) for _ in range(rng.choice([0, 0, 1, 2]))]
    if any(
        isinstance(c, type | type(math) | type(math.sin) | torch.nn.Module) for c in constraints
    ):
        return  # what a function of the user does is the user's
    parameters = {"x": Float(0, 1), "y": branches(rng), "k": 1}
    made = Space(parameters, constraints if rng.random() < 0.95 else junk(rng))
    for _ in range(3):
        point = [rng.choice([0.0, 1.0, rng.random()]) for _ in range(made.d)]
        found = made.decode(torch.tensor(point, dtype=torch.float64))
        assert made.check(found) == found
        projected = made.project(torch.tensor([point], dtype=torch.float64))
        torch.testing.assert_close(made.encode(found), projected[0], atol=1e-9, rtol=0.0)
        assert made.from_json(made.to_json(found)) == found
        assert not made.lacking(found)
        assert made.relevant(found) == found
        assert made.allows(found) in (True, False)
    json.dumps(made.to_dict(), allow_nan=False)
    assert made.check(config(rng, made))
    opt = optimizer(made, initial=3)
    for _ in range(rng.randrange(1, 4)):
        trial = opt.ask()
        assert made.allows(trial.config)
        opt.tell(trial, trial["x"])
    check_run(opt)
    again = Optimizer.from_state(opt.state, space=made, network=network())
    assert again.trials == opt.trials


def space(rng: random.Random) -> None:
    """Spaces, their points and their descriptions."""
    parameters: dict[Any, Any] = {}
    names: list[Any] = ["x", "a b", "é", "y", "\ud800", junk(rng)]
    for name in rng.sample(names[: rng.choice([4, 4, 4, 6])], rng.randrange(1, 4)):
        with contextlib.suppress(TypeError):
            hash(name)
            parameters[name] = junk(rng) if rng.random() < 0.1 else parameter(rng)
    constraints: Any = []
    if rng.random() < 0.3:
        linear = {rng.choice(["x", "a b"]): number(rng)}
        constraints = [Linear(linear, number(rng))] if rng.random() < 0.8 else junk(rng)
    pool = [config(rng, Space(MIXED)), {}, junk(rng)] if rng.random() < 0.1 else None
    made = Space(parameters, constraints, pool)
    for _ in range(3):
        point = [rng.choice([0.0, 1.0, rng.random()]) for _ in range(made.d)]
        found = made.decode(torch.tensor(point, dtype=torch.float64))
        assert made.check(found) == found
        code = made.encode(found)
        assert bool(code.isfinite().all()), (found, code)
        assert float(code.min()) > -1e-9
        assert float(code.max()) < 1 + 1e-9
        made.allows(found)
        assert made.from_json(made.to_json(found)) == found
    made.project(torch.rand(5, made.d, dtype=torch.float64, generator=generator(rng.randrange(9))))
    description = made.to_dict()
    json.dumps(description, allow_nan=False)
    assert repr(made)
    assert made.check(config(rng, made))
    assert Space.from_dict(description).to_dict() == description


@functools.cache
def saved() -> str:
    opt = optimizer(start=[{"x": 0.5, "n": 2, "c": "a"}])
    opt.tell(opt.ask(), 1.0, cost=2.0, violation=-1.0)
    opt.tell(opt.ask(), failed=True, reason="no memory")
    opt.tell(opt.ask(), 3.0, violation=1.0)
    opt.withdraw(opt.ask())
    opt.ask()
    opt.enqueue({"x": 0.25, "n": 2, "c": "a"})
    return json.dumps(opt.state)


def places(value: Any) -> list[tuple[Any, Any]]:
    """All (container, key) in a JSON value."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    found = [(value, key) for key, _ in items]
    return found + [p for _, v in items if isinstance(v, dict | list) for p in places(v)]


def state(rng: random.Random) -> None:
    """Files of runs, damaged in one or two places."""
    text = saved()
    damaged: Any = json.loads(text)
    for _ in range(rng.randrange(1, 3)):
        container, key = rng.choice(places(damaged))
        if rng.random() < 0.2:
            del container[key]
        else:
            container[key] = copy.deepcopy(json_junk(rng))
    text = json.dumps(damaged)
    if rng.random() < 0.2:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(["", "NaN", "Infinity", "1e999", "[" * 5000, "\0"])
        text += saved()[at + rng.randrange(9) :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        path.write_text(text, encoding="utf-8")
        loaded = Optimizer.load(path, network=network())
        check_run(loaded)
        loaded.save(path)
        assert Optimizer.load(path, network=network()).state == loaded.state


@functools.cache
def content() -> bytes:
    return weights_path(NETWORK).read_bytes()


@functools.cache
def whole() -> dict[str, torch.Tensor]:
    return load_network(weights_path(NETWORK))[0].state_dict()


def weights(rng: random.Random) -> None:
    """Files of weights, damaged anywhere, or with another description and a good checksum."""
    data = bytearray(content())
    (length,) = struct.unpack("<Q", data[:8])
    kind = rng.randrange(4)
    if kind == 0:
        del data[rng.randrange(len(data)) :]
    elif kind == 1:
        at = rng.randrange(rng.choice([8, 8 + length, len(data)]))
        data[at] ^= 1 << rng.randrange(8)
    else:
        header = json.loads(data[8 : 8 + length])
        about = json.loads(header["__metadata__"]["amortes"])
        container, key = rng.choice(places(about))
        container[key] = rng.choice([None, -1, "x", [], {}, True, 0.5, math.nan])
        if kind == 3:
            about.pop("checksum", None)
            about["checksum"] = _checksum(about)
        header["__metadata__"]["amortes"] = json.dumps(about)
        text = json.dumps(header).encode()
        data = bytearray(struct.pack("<Q", len(text)) + text + data[8 + length :])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights"
        path.write_bytes(bytes(data))
        found = load_network(path)[0].state_dict()
        assert all(torch.equal(found[name], tensor) for name, tensor in whole().items())


TARGETS: dict[str, tuple[Callable[[random.Random], None], int]] = {
    "tell": (tell, 26),
    "settings": (settings, 10),
    "ask": (ask, 2),
    "table": (table, 6),
    "space": (space, 25),
    "conditional": (conditional, 5),
    "state": (state, 20),
    "weights": (weights, 6),
}
"""By name, with how often each comes in a hundred inputs."""


def run(seed: int, index: int) -> str:
    """One input; its target, and whether it was refused. Whatever is a defect is raised."""
    rng = random.Random(f"{seed}/{index}")
    name = rng.choices(list(TARGETS), [share for _, share in TARGETS.values()])[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also those of others
        warnings.simplefilter("ignore", AmortesWarning)
        try:
            TARGETS[name][0](rng)
        except AmortesError:
            return f"{name}: refused"
    return f"{name}: taken"
