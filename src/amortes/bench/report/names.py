"""What the names of problems and methods in a results file mean, as the registries have it.

Problems belong to groups that are shown together; the HPO-B tasks of one search space share a
panel. A method is a model and an acquisition: `jes` is ours, `jes@kernel-paper` ours with other
weights, `fb-jes` the fully Bayesian GP, `map-jes` the MAP GP; `paper:jes` and `paper:fb-jes` are
the published curves of the alpha-PFN and of its GP baseline.
"""

import dataclasses
import functools
from collections.abc import Iterable
from pathlib import PurePath
from typing import NamedTuple

import pandas as pd

from amortes.bench.methods.registry import METHODS
from amortes.bench.problems.registry import KINDS, kind_of

GROUPS = {
    "synthetic": "synthetic",
    "noise": "synthetic, other noise",
    "lcbench": "LCBench",
    "hpob": "HPO-B",
    "other": "other",
}
METRICS = {"regret": "log10 inference regret", "accuracy": "accuracy (%)", "value": "value"}
PANELS = {panel: label for kind in KINDS for panel, label in kind.labels.items()}


class Acquisition(NamedTuple):
    """How an acquisition function is shown, and what it is compared under."""

    label: str
    column: str  # LogEI has EI's maximiser, GIBBON is a MES
    colour: str
    marker: str


ACQUISITIONS = {  # colours after Okabe & Ito (2008)
    "auto": Acquisition("auto", "", "#212529", "*"),
    "pes": Acquisition("PES", "pes", "#0072b2", "o"),
    "mes": Acquisition("MES", "mes", "#d55e00", "s"),
    "jes": Acquisition("JES", "jes", "#009e73", "^"),
    "ei": Acquisition("EI", "ei", "#b0518c", "D"),
    "logei": Acquisition("LogEI", "ei", "#7a1f4d", "v"),
    "gibbon": Acquisition("MES (GIBBON)", "mes", "#5c636a", "s"),
}
MODELS = {
    "ours": "amortes",
    "fb": "fully Bayesian GP",
    "map": "MAP GP",
    "paper": "published α-PFN",
    "paper:fb": "published fully Bayesian GP",
    "other": "other",
}


@dataclasses.dataclass(frozen=True)
class Method:
    """A parsed name of a method."""

    label: str  # for legends and tables
    model: str = "other"  # a key of MODELS
    acquisition: str = ""  # a key of ACQUISITIONS; empty for "other"
    weights: str = ""  # after the @, of a file without folder and ending; empty for the default
    column: str = ""  # the acquisition it is compared under; empty if there is none
    is_ours: bool = False  # with the default weights
    short: str = ""  # the label without the model


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
        return Method(entry.label if entry and not source else name)
    weights = PurePath(weights).name.removesuffix(".safetensors")
    label, column, _, _ = ACQUISITIONS[entry.acquisition]
    short = label + (weights and f" @{weights}")
    return Method(
        label=f"{MODELS[model]} {short}",
        model=model,
        acquisition=entry.acquisition,
        weights=weights,
        column=column,
        is_ours=model == "ours" and not weights,
        short=short,
    )


def label_of(name: str) -> str:
    """What readers call a method."""
    return parse_method(name).label


def facts(names: "pd.Series[str]") -> pd.DataFrame:
    """What `Method` says of each name, to choose rows by."""
    columns = [field.name for field in dataclasses.fields(Method)]
    rows = [vars(parse_method(name)) for name in names]
    return pd.DataFrame(rows, names.index, columns).astype({"is_ours": bool})


def same_acquisition(names: Iterable[str], ours: str, model: str) -> str | None:
    """The method of a model (default weights) with this one's acquisition, or its maximiser."""
    our, found = parse_method(ours), {}
    for name in names:
        their = parse_method(name)
        if our.column and (their.model, their.column, their.weights) == (model, our.column, ""):
            found[their.acquisition] = name
    return found.get(our.acquisition, next(iter(found.values()), None))


def versus(ours: str, theirs: str) -> str:
    """`JES against MAP GP`; the rival's acquisition is said if it is another one."""
    our, their = parse_method(ours), parse_method(theirs)
    rival = MODELS[their.model] if our.acquisition == their.acquisition else their.label
    return f"{our.short} against {rival}"


def group_of(problem: str) -> str:
    """A key of GROUPS."""
    kind = kind_of(problem)
    return kind.group if kind else "other"


def metric_of(problem: str) -> str:
    """What is drawn for a problem, a key of METRICS; regret is to be small."""
    return {"lcbench": "accuracy", "other": "value"}.get(group_of(problem), "regret")


def panel_of(problem: str) -> str:
    """Problems of a panel are averaged: the tasks of an HPO-B space; others stand alone."""
    kind = kind_of(problem)
    return kind.panel(problem) if kind else problem


def panel_label(name: str) -> str:
    """For titles and tables."""
    return PANELS.get(name, name)


def order_problems(problems: Iterable[str]) -> list[str]:
    """By group, then as in the registry, then by name."""
    places = {panel: place for place, panel in enumerate(PANELS)}

    def key(problem: str) -> tuple[int, int, str]:
        place = places.get(panel_of(problem), len(places))
        return [*GROUPS].index(group_of(problem)), place, problem

    return sorted(set(problems), key=key)


def order_methods(methods: Iterable[str]) -> list[str]:
    """Ours (default weights first), fully Bayesian, MAP, published, others."""

    def key(name: str) -> tuple[int, str, int, str]:
        method = parse_method(name)
        acquisition = [*ACQUISITIONS, ""].index(method.acquisition)
        return [*MODELS].index(method.model), method.weights, acquisition, name

    return sorted(set(methods), key=key)
