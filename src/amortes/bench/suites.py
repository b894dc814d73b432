"""Named sets of runs: which problems, how many observations, which seeds and methods.

The paper's protocol is 100 observations with 30 seeds on the continuous problems and 50 with 5
seeds on HPO-B. Defaults here have 10 seeds; `--seeds 0-29` has as many as the paper.
"""

import dataclasses
import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

from amortes.bench.problems import chemistry, engineering, hpob, lcbench, models, synthetic
from amortes.bench.problems.registry import FAMILIES, HIGH_NOISE
from amortes.bench.results import PlannedRun
from amortes.errors import ConfigError

# What runs within seconds per step; fully Bayesian baselines (fb-...) are asked for by name.
SEEDS = tuple(range(5))
METHODS = ("pes", "mes", "jes", "logei", "map-logei", "optuna-tpe", "optuna-gp", "random")


@dataclass(frozen=True, kw_only=True)
class Part:
    """Problems that share a number of observations and seeds."""

    problems: tuple[str, ...]
    iterations: int = 100
    seeds: tuple[int, ...] = tuple(range(10))


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Parts, and the methods to run on all of them."""

    parts: tuple[Part, ...]
    methods: tuple[str, ...] = METHODS


_SYNTHETIC = Part(problems=tuple(synthetic.FUNCTIONS))
_LCBENCH = Part(problems=tuple(lcbench.TASKS))
_HPOB = Part(problems=hpob.NAMES, iterations=50, seeds=SEEDS)

# Some problems of each family that users would know, so that no family decides and a seed of a
# method takes minutes. Left out: accuracies that many configurations share, and large pools.
_CLASSIC = (
    *("branin", "holder-table", "hartmann3", "rastrigin3", "shekel", "rosenbrock4", "levy5"),
    *("styblinski-tang5", "hartmann6", "ackley6"),
)
REAL: dict[str, tuple[str, ...]] = {
    "classic": tuple(f"classic-{name}" for name in _CLASSIC),
    "classic-noisy": tuple(f"classic-{name}-noisy" for name in _CLASSIC),
    "engineering": tuple(engineering.DESIGNS),
    "chemistry": chemistry.NAMES,
    "lcbench": tuple(lcbench.TASKS),
    "hpob": ("hpob-5527-146064", "hpob-5891-9889", "hpob-7609-145854", "hpob-5971-10093"),
    "hpo-tables": (
        *("hpobench-australian", "hpobench-kc1", "hpobench-phoneme", "hpobench-vehicle"),
        *("hpolib-naval-propulsion", "hpolib-protein-structure"),
    ),
    "sklearn": (
        *("sklearn-svm-cancer", "sklearn-svr-diabetes", "sklearn-logistic-wine"),
        *("sklearn-boosting-diabetes", "sklearn-mlp-cancer"),
    ),
}

SUITES: dict[str, Suite] = {
    "synthetic": Suite(parts=(_SYNTHETIC,)),
    "noise": Suite(parts=(Part(problems=tuple(f"{p}{HIGH_NOISE}" for p in synthetic.FUNCTIONS)),)),
    "lcbench": Suite(parts=(_LCBENCH,)),
    "hpob": Suite(parts=(_HPOB,)),
    "sklearn": Suite(parts=(Part(problems=tuple(models.TUNINGS), iterations=50),)),
    "real": Suite(
        parts=(Part(problems=tuple(p for names in REAL.values() for p in names), seeds=SEEDS),),
        methods=("auto", "jes", "logei", "botorch", "optuna-gp", "optuna-tpe", "hebo", "random"),
    ),
    "mini": Suite(
        parts=(
            Part(problems=("branin", "hartmann4"), iterations=15, seeds=(0, 1, 2)),
            Part(problems=("sklearn-mlp-wine",), iterations=10, seeds=(0, 1, 2)),
            Part(problems=(f"hartmann4{HIGH_NOISE}",), iterations=10, seeds=(0, 1)),
        ),
        methods=("jes", "logei", "jes@kernel-paper", "map-logei", "optuna-tpe", "random"),
    ),
    "paper": Suite(parts=(_SYNTHETIC, _LCBENCH, _HPOB)),
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
    chosen = _everything() if suite is None else _named(suite)
    if suite is None and not problems:
        raise ConfigError("Nothing to run: give a suite, or problems.")
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


def _named(suite: str) -> Suite:
    if suite not in SUITES:
        raise ConfigError(f"suite: must be one of {', '.join(SUITES)}, not {suite!r}.")
    return SUITES[suite]


def _everything() -> Suite:
    suites = ("synthetic", "noise", "lcbench", "hpob", "sklearn")
    others = ("classic", "classic-noisy", "engineering", "hpo-tables", "chemistry")
    parts = [part for name in suites for part in SUITES[name].parts]
    return Suite(parts=(*parts, *(Part(problems=FAMILIES[name]) for name in others)))


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
