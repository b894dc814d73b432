"""What the names of problems and methods in a results file mean, as the registries have it.

Problems belong to groups that are shown together; the HPO-B tasks of one search space share a
panel. A method is a model and an acquisition: `jes` is ours, `jes@kernel-paper` ours with other
weights, `fb-jes` the fully Bayesian GP, `map-jes` the MAP GP; `paper:jes` and `paper:fb-jes` are
the published curves of the alpha-PFN and of its GP baseline.
"""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from amortes.bench.methods.registry import METHODS
from amortes.bench.problems.registry import KINDS, PROBLEMS, kind_of
from amortes.bench.problems.synthetic import NOISY

GROUPS = {
    "synthetic": "synthetic",
    "noise": "synthetic, other noise",
    "lcbench": "LCBench",
    "hpob": "HPO-B",
    "other": "other",
}
METRICS = dict.fromkeys(GROUPS, "regret") | {"lcbench": "accuracy", "other": "value"}
METRIC_LABELS = {"regret": "log10 inference regret", "accuracy": "accuracy (%)", "value": "value"}
PANELS = {panel: label for kind in KINDS for panel, label in kind.labels.items()}
ALL_SPACES = "all spaces"
ACQUISITIONS = {
    "auto": "auto",
    "pes": "PES",
    "mes": "MES",
    "jes": "JES",
    "ei": "EI",
    "logei": "LogEI",
    "gibbon": "MES (GIBBON)",
}
COLUMNS = {"pes": "pes", "mes": "mes", "gibbon": "mes", "jes": "jes", "ei": "ei", "logei": "ei"}
"""What acquisitions are compared under: LogEI has EI's maximiser, GIBBON is a MES."""
MODELS = {
    "ours": "amortes",
    "fb": "fully Bayesian GP",
    "map": "MAP GP",
    "paper": "published α-PFN",
    "paper:fb": "published fully Bayesian GP",
    "other": "other",
}


@dataclass(frozen=True, kw_only=True)
class Method:
    """A parsed name of a method."""

    name: str
    label: str  # for legends and tables
    model: str = "other"  # a key of MODELS
    acquisition: str = ""  # a key of ACQUISITIONS; empty for "other"
    weights: str = ""  # after the @, of a file without folder and ending; empty for the default

    @property
    def column(self) -> str:
        """The acquisition it is compared under; empty if there is none."""
        return COLUMNS.get(self.acquisition, "")

    @property
    def is_ours(self) -> bool:
        """Whether it is one of ours with the default weights."""
        return self.model == "ours" and not self.weights

    @property
    def short(self) -> str:
        """The label of one of ours, without our name."""
        return self.label.removeprefix(f"{MODELS['ours']} ")


@functools.cache
def parse_method(name: str) -> Method:
    """The model, acquisition, weights and label of a method's name."""
    rest, _, weights = name.partition("@")
    source, _, kind = rest.rpartition(":")
    entry = METHODS.get(kind)
    model = entry.model if entry else "other"
    if source:
        model = {"paper:ours": "paper", "paper:fb": "paper:fb"}.get(f"{source}:{model}", "other")
    if entry is None or model == "other":
        return Method(name=name, label=entry.label if entry and not source else name)
    weights = PurePath(weights).name.removesuffix(".safetensors")
    label = f"{MODELS[model]} {ACQUISITIONS[entry.acquisition]}" + (weights and f" @{weights}")
    return Method(
        name=name, label=label, model=model, acquisition=entry.acquisition, weights=weights
    )


def same_acquisition(names: Iterable[str], method: Method, model: str) -> str | None:
    """The method of a model (default weights) with this one's acquisition, or its maximiser."""
    found = [other for other in map(parse_method, names) if other.model == model]
    found = [other for other in found if other.column == method.column and not other.weights]
    found.sort(key=lambda other: other.acquisition != method.acquisition)
    return found[0].name if method.column and found else None


def versus(ours: str, theirs: str) -> str:
    """`JES against MAP GP`; the rival's acquisition is said if it is another one."""
    our, their = parse_method(ours), parse_method(theirs)
    rival = MODELS[their.model] if our.acquisition == their.acquisition else their.label
    return f"{our.short} against {rival}"


def in_overview(name: str) -> bool:
    """Ours and what people use today: what fits into one figure."""
    method = parse_method(name)
    return method.is_ours or method.model == "other" or name == "map-logei"


def _squashed(problem: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", problem.lower())


_SPELLINGS = {_squashed(name): name for name in PROBLEMS}


def canonical(problem: str) -> str:
    """One spelling per problem: `lcbench-FashionMNIST` is `lcbench-fashion-mnist`."""
    return _SPELLINGS.get(_squashed(problem), problem.lower())


def noise_of(problem: str) -> tuple[str, float | None]:
    """The problem without its `-noise0.5`, and that number; None if the name has none."""
    match = NOISY.fullmatch(problem)
    return (match["base"], float(match["sd"])) if match else (problem, None)


def group_of(problem: str) -> str:
    """A key of GROUPS."""
    kind = kind_of(problem)
    return kind.group if kind else "other"


def metric_of(problem: str) -> str:
    """What is drawn for a problem, a key of METRIC_LABELS; regret is to be small."""
    return METRICS[group_of(problem)]


def panel_of(problem: str) -> str:
    """Problems of a panel are averaged: the tasks of an HPO-B space; others stand alone."""
    kind = kind_of(problem)
    return kind.panel(problem) if kind else problem


def panel_label(name: str) -> str:
    """For titles and tables."""
    return PANELS.get(name, name)


def order_problems(problems: Iterable[str]) -> list[str]:
    """By group, then as in the registry, then by name."""
    groups, panels = list(GROUPS), list(PANELS)

    def key(problem: str) -> tuple[int, int, str]:
        panel = panel_of(problem)
        place = panels.index(panel) if panel in PANELS else len(panels)
        return groups.index(group_of(problem)), place, problem

    return sorted(set(problems), key=key)


def order_methods(methods: Iterable[str]) -> list[str]:
    """Ours (default weights first), fully Bayesian, MAP, published, others."""
    models, acquisitions = list(MODELS), [*ACQUISITIONS, ""]

    def key(name: str) -> tuple[int, str, int, str]:
        method = parse_method(name)
        acquisition = acquisitions.index(method.acquisition)
        return models.index(method.model), method.weights, acquisition, name

    return sorted(set(methods), key=key)
