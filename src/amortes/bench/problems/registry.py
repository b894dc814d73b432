"""Problems by name."""

from collections.abc import Callable

from amortes.bench.problems import (
    chemistry,
    classic,
    engineering,
    hpo_tables,
    hpob,
    lcbench,
    models,
    synthetic,
)
from amortes.bench.protocol import Problem
from amortes.errors import ConfigError

HIGH_NOISE = "-noise0.5"  # of the paper's noise study

# Family, names and maker of each kind of problem. To add one, add a line.
_KINDS: tuple[tuple[str, tuple[str, ...], Callable[[str], Problem]], ...] = (
    ("synthetic", tuple(synthetic.FUNCTIONS), synthetic.Synthetic),
    (
        "synthetic",
        tuple(f"{name}{HIGH_NOISE}" for name in synthetic.FUNCTIONS),
        synthetic.Synthetic,
    ),
    ("lcbench", tuple(lcbench.TASKS), lcbench.LCBench),
    ("hpob", hpob.NAMES, hpob.HPOB),
    ("sklearn", tuple(models.TUNINGS), models.ModelTuning),
    ("classic", classic.NAMES, classic.Classic),
    ("classic-noisy", classic.NOISY_NAMES, classic.Classic),
    ("engineering", tuple(engineering.DESIGNS), engineering.Engineering),
    ("hpo-tables", hpo_tables.NAMES, hpo_tables.HPOTable),
    ("chemistry", chemistry.NAMES, chemistry.make_chemistry),
)

FAMILIES: dict[str, tuple[str, ...]] = {}
"""Names of problems by family."""
for _family, _names, _ in _KINDS:
    FAMILIES[_family] = FAMILIES.get(_family, ()) + _names
PROBLEMS: tuple[str, ...] = tuple(name for _, names, _ in _KINDS for name in names)
"""All problems that have a name."""


def make_problem(name: str) -> Problem:
    """The problem of this name; a `ConfigError` lists the names there are."""
    for _, names, maker in _KINDS:
        if name in names:
            return maker(name)
    raise ConfigError(f"problem: no problem {name!r}; there are {', '.join(PROBLEMS)}.")


def family_of(name: str) -> str:
    """The family of the problem of this name; "prior" for functions of a prior, which have none."""
    return next((family for family, names in FAMILIES.items() if name in names), "prior")
