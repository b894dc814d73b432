"""Problems by name. To add some, write a module with a `Kind` and name it in `KINDS`."""

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
from amortes.bench.protocol import Kind, Problem
from amortes.errors import ConfigError

KINDS: tuple[Kind, ...] = (
    synthetic.KIND,
    synthetic.NOISE_KIND,
    classic.KIND,
    classic.NOISY_KIND,
    classic.WIDE_KIND,
    engineering.KIND,
    chemistry.KIND,
    lcbench.KIND,
    hpob.KIND,
    hpo_tables.KIND,
    models.KIND,
)
_KIND_OF: dict[str, Kind] = {name: kind for kind in KINDS for name in kind.names}
PROBLEMS: tuple[str, ...] = tuple(_KIND_OF)  # all problems that have a name


def make_problem(name: str) -> Problem:
    """The problem of this name; a `ConfigError` lists the names there are."""
    kind = kind_of(name)
    if kind is None:
        raise ConfigError(f"problem: no problem {name!r}; there are {', '.join(PROBLEMS)}.")
    return kind.make(name)


def kind_of(name: str) -> Kind | None:
    """The kind of the problem of this name; None for those that have no name here."""
    return _KIND_OF.get(name)


def family_of(name: str) -> str:
    """The family of the problem of this name; "prior" for functions of a prior, which have none."""
    kind = kind_of(name)
    return kind.family if kind else "prior"
