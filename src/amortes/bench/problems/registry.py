"""Problems by name."""

from collections.abc import Callable

from amortes.bench.problems import hpob, lcbench, models, synthetic
from amortes.bench.protocol import Problem
from amortes.errors import ConfigError

HIGH_NOISE = "-noise0.5"  # of the paper's noise study

_KINDS: tuple[tuple[tuple[str, ...], Callable[[str], Problem]], ...] = (
    (tuple(synthetic.FUNCTIONS), synthetic.Synthetic),
    (tuple(f"{name}{HIGH_NOISE}" for name in synthetic.FUNCTIONS), synthetic.Synthetic),
    (tuple(lcbench.TASKS), lcbench.LCBench),
    (hpob.NAMES, hpob.HPOB),
    (tuple(models.TUNINGS), models.ModelTuning),
)

PROBLEMS: tuple[str, ...] = tuple(name for names, _ in _KINDS for name in names)
"""All problems that have a name."""


def make_problem(name: str) -> Problem:
    """The problem of this name; a `ConfigError` lists the names there are."""
    for names, maker in _KINDS:
        if name in names:
            return maker(name)
    raise ConfigError(f"problem: no problem {name!r}; there are {', '.join(PROBLEMS)}.")
