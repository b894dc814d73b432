"""Named sets of runs: which problems, how many observations, which seeds and methods.

The paper's protocol is 100 observations with 30 seeds on the continuous problems and 50 with 5
seeds on HPO-B. Defaults here have 10 seeds; `--seeds 0-29` has as many as the paper.
"""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

from amortes.bench.problems import classic, hpob, lcbench, models, synthetic
from amortes.bench.problems.registry import KINDS
from amortes.bench.protocol import Kind
from amortes.bench.results import PlannedRun
from amortes.errors import ConfigError

# What runs within seconds per step; fully Bayesian baselines (fb-...) are asked for by name.
METHODS = ("pes", "mes", "jes", "logei", "map-logei", "optuna-tpe", "optuna-gp", "random")


@dataclass(frozen=True)
class Part:
    """Problems that share a number of observations and seeds."""

    problems: tuple[str, ...]
    iterations: int
    seeds: tuple[int, ...]


def _parts(*kinds: Kind) -> list[Part]:
    return [Part(kind.names, kind.iterations, kind.seeds) for kind in kinds]


REAL: dict[str, tuple[str, ...]] = {kind.family: kind.real for kind in KINDS if kind.real}
"""The problems of the suite `real` by family."""

SUITES: dict[str, list[Part]] = {
    "synthetic": _parts(synthetic.KIND),
    "noise": _parts(synthetic.NOISE_KIND),
    "lcbench": _parts(lcbench.KIND),
    "hpob": _parts(hpob.KIND),
    "sklearn": _parts(models.KIND),
    "real": [Part(tuple(name for names in REAL.values() for name in names), 100, (0, 1, 2, 3, 4))],
    "wide": _parts(classic.WIDE_KIND),
    "mini": [
        Part(("branin", "hartmann4"), 15, (0, 1, 2)),
        Part(("sklearn-mlp-wine",), 10, (0, 1, 2)),
        Part(("hartmann4-noise0.5",), 10, (0, 1)),
    ],
    "paper": _parts(synthetic.KIND, lcbench.KIND, hpob.KIND),
    # One task of each HPO-B space; for times, so with one worker on a machine without other work.
    "runtime": [
        Part(
            (
                *("branin", "hartmann4", "hartmann6", "ackley5", "ackley8"),
                *lcbench.TASKS,
                *(f"hpob-{space}-{tasks[0]}" for space, tasks in hpob.TASKS.items()),
            ),
            20,
            (0,),
        ),
    ],
}
OTHER_METHODS: dict[str | None, tuple[str, ...]] = {
    "real": ("auto", "jes", "logei", "botorch", "optuna-gp", "optuna-tpe", "hebo", "random"),
    "wide": ("auto", "botorch", "optuna-gp", "optuna-tpe", "random"),
    "mini": ("jes", "logei", "jes@kernel-paper", "map-logei", "optuna-tpe", "random"),
    "runtime": ("pes", "mes", "jes", "map-logei", "fb-pes", "fb-mes", "fb-jes"),
}
"""Of the suites with other methods than `METHODS`."""


def plan(
    suite: str | None,
    *,
    problems: Sequence[str] = (),
    methods: Sequence[str] = (),
    seeds: Sequence[int] = (),
    iterations: int | None = None,
) -> list[PlannedRun]:
    """The runs of a suite, ordered so that all problems and methods advance evenly by seed.

    `problems` are names or patterns such as `hpob-5971-*`, which choose from the suite or, without
    one, from all problems; the rest replaces what the suite says.
    """
    if suite is None and not problems:
        raise ConfigError("Nothing to run: give a suite, or problems.")
    if suite is not None and suite not in SUITES:
        raise ConfigError(f"suite: must be one of {', '.join(SUITES)}, not {suite!r}.")
    parts = _parts(*KINDS) if suite is None else SUITES[suite]
    known = [problem for part in parts for problem in part.problems]
    for pattern in problems:
        if not fnmatch.filter(known, pattern):
            raise ConfigError(f"problems: no {pattern!r} here; there are {', '.join(known)}.")
    wanted = {name for pattern in problems or ["*"] for name in fnmatch.filter(known, pattern)}
    runs = [
        PlannedRun(
            problem=problem, method=method, seed=seed, iterations=iterations or part.iterations
        )
        for part in parts
        for seed in seeds or part.seeds
        for problem in part.problems
        if problem in wanted
        for method in methods or OTHER_METHODS.get(suite, METHODS)
    ]
    return sorted(runs, key=lambda run: run.seed)
