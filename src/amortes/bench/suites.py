"""Named sets of runs: which problems, how many observations, which seeds and methods.

The paper's protocol is 100 observations with 30 seeds on the continuous problems and 50 with 5
seeds on HPO-B. Defaults here have 10 seeds; `--seeds 0-29` has as many as the paper.
"""

import dataclasses
import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

from amortes.bench.problems import hpob, lcbench, models, synthetic
from amortes.bench.problems.registry import KINDS
from amortes.bench.protocol import Kind
from amortes.bench.results import PlannedRun
from amortes.errors import ConfigError

# What runs within seconds per step; fully Bayesian baselines (fb-...) are asked for by name.
METHODS = ("pes", "mes", "jes", "logei", "map-logei", "optuna-tpe", "optuna-gp", "random")


@dataclass(frozen=True, kw_only=True)
class Part:
    """Problems that share a number of observations and seeds."""

    problems: tuple[str, ...]
    iterations: int
    seeds: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Parts, and the methods to run on all of them."""

    parts: tuple[Part, ...]
    methods: tuple[str, ...] = METHODS


def _whole(*kinds: Kind) -> Suite:
    return Suite(
        parts=tuple(
            Part(problems=kind.names, iterations=kind.iterations, seeds=kind.seeds)
            for kind in kinds
        )
    )


REAL: dict[str, tuple[str, ...]] = {kind.family: kind.real for kind in KINDS if kind.real}
"""The problems of the suite `real` by family."""

SUITES: dict[str, Suite] = {
    "synthetic": _whole(synthetic.KIND),
    "noise": _whole(synthetic.NOISE_KIND),
    "lcbench": _whole(lcbench.KIND),
    "hpob": _whole(hpob.KIND),
    "sklearn": _whole(models.KIND),
    "real": Suite(
        parts=(
            Part(
                problems=tuple(p for names in REAL.values() for p in names),
                iterations=100,
                seeds=tuple(range(5)),
            ),
        ),
        methods=("auto", "jes", "logei", "botorch", "optuna-gp", "optuna-tpe", "hebo", "random"),
    ),
    "mini": Suite(
        parts=(
            Part(problems=("branin", "hartmann4"), iterations=15, seeds=(0, 1, 2)),
            Part(problems=("sklearn-mlp-wine",), iterations=10, seeds=(0, 1, 2)),
            Part(problems=("hartmann4-noise0.5",), iterations=10, seeds=(0, 1)),
        ),
        methods=("jes", "logei", "jes@kernel-paper", "map-logei", "optuna-tpe", "random"),
    ),
    "paper": _whole(synthetic.KIND, lcbench.KIND, hpob.KIND),
    # One task of each HPO-B space; for times, so with one worker on a machine without other work.
    "runtime": Suite(
        parts=(
            Part(
                problems=(
                    *("branin", "hartmann4", "hartmann6", "ackley5", "ackley8"),
                    *lcbench.TASKS,
                    *(f"hpob-{space}-{tasks[0]}" for space, tasks in hpob.TASKS.items()),
                ),
                iterations=20,
                seeds=(0,),
            ),
        ),
        methods=("pes", "mes", "jes", "map-logei", "fb-pes", "fb-mes", "fb-jes"),
    ),
}


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
    chosen = _whole(*KINDS) if suite is None else SUITES[suite]
    parts = _select(chosen.parts, problems)
    runs = [
        PlannedRun(
            problem=problem, method=method, seed=seed, iterations=iterations or part.iterations
        )
        for part in parts
        for seed in seeds or part.seeds
        for problem in part.problems
        for method in methods or chosen.methods
    ]
    return sorted(runs, key=lambda run: run.seed)


def _select(parts: Sequence[Part], patterns: Sequence[str]) -> list[Part]:
    """The parts with those problems only that a pattern matches; each must match something."""
    if not patterns:
        return list(parts)
    known = [problem for part in parts for problem in part.problems]
    for pattern in patterns:
        if not fnmatch.filter(known, pattern):
            raise ConfigError(f"problems: no {pattern!r} here; there are {', '.join(known)}.")
    wanted = {problem for pattern in patterns for problem in fnmatch.filter(known, pattern)}
    return [
        dataclasses.replace(part, problems=tuple(p for p in part.problems if p in wanted))
        for part in parts
    ]
