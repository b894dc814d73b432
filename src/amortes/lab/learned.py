"""What the results say so far, as numbers for charts: the model along one and two parameters.

Slices go through the recommended config. The gain is what the
acquisition of the study gives: expected information about the optimum (PES, MES, JES) or expected
improvement, weighed by the chance of success and the cost, with pending trials taken into account.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from amortes.errors import DataError
from amortes.lab.errors import ConflictError, NotFoundError
from amortes.lab.study import Snapshot
from amortes.lab.words import worth_text
from amortes.optimiser import Optimizer, Recommendation, Space
from amortes.optimiser.choices import Choices, Parameter, identity
from amortes.optimiser.limits import departures
from amortes.optimiser.numeric import Numeric
from amortes.optimiser.space import Config
from amortes.optimiser.trials import robust_sd

LEVEL = 0.9
LINE, SIDE = 41, 21  # values along a slice, and along each side of a contour
MATTER = 3  # parameters that are shown in pairs


def overview(optimizer: Optimizer, snapshot: Snapshot) -> dict[str, Any]:
    """Recommendation, importance, whether to go on, and what the user should know."""
    found = recommended(optimizer)
    values = [trial.value for trial in snapshot.having("done") if trial.value is not None]
    gain = optimizer.expected_gain()
    size = robust_sd(values, maximise=snapshot.goal == "maximize")
    verdict, sentence = worth_text(gain, size, snapshot.about.unit, len(values))
    return {
        "recommendation": dict(vars(found)),
        "importance": optimizer.importance(),
        "expected_gain": gain,
        "worth": verdict,
        "worth_text": sentence,
        "cautions": [text for _, text in departures(optimizer._suggester.fitted())],
    }


def slices(optimizer: Optimizer, snapshot: Snapshot) -> dict[str, Any]:
    """The predictive and the gain along each parameter, the others as recommended."""
    centre, space, done = recommended(optimizer).config, optimizer.space, snapshot.having("done")
    known = [centre, *_best_first(snapshot)]
    along = {name: values_of(space, name, LINE, known) for name in space.free if name in centre}
    configs = [
        space.adapted({**centre, name: value}) for name, values in along.items() for value in values
    ]
    expected = _expected(optimizer, configs)
    ends = itertools.accumulate(map(len, along.values()))
    panels = [
        {
            "name": name,
            "axis": _axis(space.free[name]),
            "values": values,
            "told": [trial.config.get(name) for trial in done],
            **{kind: numbers[end - len(values) : end] for kind, numbers in expected.items()},
        }
        for (name, values), end in zip(along.items(), ends, strict=True)
    ]
    return {
        "centre": centre,
        "level": LEVEL,
        "panels": panels,
        "results": [trial.value for trial in done],
        "numbers": [trial.number for trial in done],
    }


def contour(optimizer: Optimizer, snapshot: Snapshot, x: str, y: str) -> dict[str, Any]:
    """Median, half the width of the interval, and gain over two parameters; rows go up y."""
    space = optimizer.space
    for name in (x, y):
        if name not in space.free:
            raise NotFoundError(f"There is no parameter {name} that varies.")
    if x == y:
        raise ConflictError("Choose two different parameters.")
    centre = recommended(optimizer).config
    known = [centre, *_best_first(snapshot)]
    across, up = (values_of(space, name, SIDE, known) for name in (x, y))
    configs = [space.adapted({**centre, x: a, y: b}) for b in up for a in across]
    if not all(x in config and y in config for config in configs):
        raise ConflictError(
            f"{x} and {y} do not always matter at the same time, so there is nothing to show."
        )
    expected = _expected(optimizer, configs)
    ends = zip(expected["lower"], expected["upper"], strict=True)

    def rows(numbers: Sequence[float | None]) -> list[list[float | None]]:
        return [list(numbers[i : i + len(across)]) for i in range(0, len(configs), len(across))]

    return {
        "centre": centre,
        "x": {"name": x, "axis": _axis(space.free[x]), "values": across},
        "y": {"name": y, "axis": _axis(space.free[y]), "values": up},
        "median": rows(expected["median"]),
        "half_width": rows([(upper - lower) / 2 for lower, upper in ends]),
        "gain": rows(expected["gain"]),
        "allowed": rows([1.0 if space.allows(config) else None for config in configs]),
        "told": [
            {"number": t.number, "x": t.config[x], "y": t.config[y], "status": t.status}
            for t in snapshot.having("done", "pending")
            if x in t.config and y in t.config
        ],
    }


def _expected(optimizer: Optimizer, configs: Sequence[Config]) -> dict[str, list[float]]:
    """Predictions and gains of configs, by what they are."""
    predicted = optimizer.predict(configs, level=LEVEL)
    parts = {kind: [getattr(p, kind) for p in predicted] for kind in ("median", "lower", "upper")}
    return {**parts, "gain": optimizer.gains(configs)}


def pairs(space: Space, overview: dict[str, Any]) -> list[tuple[str, str]]:
    """Pairs of the parameters that matter most and always at the same time, for contours."""
    centre = overview["recommendation"]["config"]
    names = [name for name in overview["importance"] if name in centre][:MATTER]
    return [
        (x, y)
        for x, y in itertools.combinations(names, 2)
        if x not in _parents(space, y) and y not in _parents(space, x)
    ]


def _parents(space: Space, name: str) -> set[str]:
    """The parameters that decide whether this one matters."""
    found: set[str] = set()
    while name in space.conditions:
        name = space.conditions[name].parent
        found.add(name)
    return found


def _best_first(snapshot: Snapshot) -> list[Config]:
    """The configs of the results."""
    sign = -1.0 if snapshot.goal == "maximize" else 1.0
    done = sorted(snapshot.having("done"), key=lambda trial: sign * (trial.value or 0.0))
    return [trial.config for trial in done]


def values_of(space: Space, name: str, most: int, known: Sequence[Config]) -> list[Any]:
    """Values of a parameter in order: all of them, or so many spread over its range.

    Of too many choices those of known configs come first, then those that head the list.
    """
    parameter = space.free[name]
    if isinstance(parameter, Choices):
        tried = [config[name] for config in known if name in config]
        order = dict.fromkeys(map(identity, (*tried, *parameter.choices)))
        shown = set(itertools.islice(order, most))
        return [choice for choice in parameter.values() if identity(choice) in shown]
    if parameter.cardinality is not None and parameter.cardinality <= most:
        return parameter.values()
    steps = [i / (most - 1) for i in range(most)]
    return list(dict.fromkeys(parameter.decode([u]) for u in steps))


def _axis(parameter: Parameter) -> str:
    if isinstance(parameter, Numeric):
        return "log" if parameter.log else "linear"
    return "category"


def recommended(optimizer: Optimizer, level: float = LEVEL) -> Recommendation:
    """The recommendation; a `ConflictError` if there is nothing to learn from."""
    try:
        return optimizer.recommend(level=level)
    except DataError as error:
        raise ConflictError(str(error)) from None
