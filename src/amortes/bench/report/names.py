"""What the names of problems and methods in a results file mean.

Problems belong to families that are reported together; the HPO-B tasks of one search space share a
panel. A method is a model and an acquisition: `jes` is ours, `jes@kernel-paper` ours with other
weights, `fb-jes` the fully Bayesian GP, `map-jes` the MAP GP; `paper:jes` and `paper:fb-jes` are
the published curves of the alpha-PFN and of its GP baseline.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

SYNTHETIC = {
    "branin": "Branin, 2-D",
    "hartmann4": "Hartmann, 4-D",
    "ackley5": "Ackley, 5-D",
    "hartmann6": "Hartmann, 6-D",
    "ackley8": "Ackley, 8-D",
    "ackley5-near": "Ackley, |x| ≤ 15, 5-D",
    "ackley8-near": "Ackley, |x| ≤ 15, 8-D",
}
LCBENCH = {
    "lcbench-car": "LCBench Car, 7-D",
    "lcbench-fashionmnist": "LCBench Fashion-MNIST, 7-D",
    "lcbench-miniboone": "LCBench MiniBooNE, 7-D",
    "lcbench-higgs": "LCBench Higgs, 7-D",
    "lcbench-segment": "LCBench Segment, 7-D",
}
HPOB = {
    "hpob-5527": "HPO-B 5527, 8-D",
    "hpob-5891": "HPO-B 5891, 8-D",
    "hpob-7609": "HPO-B 7609, 9-D",
    "hpob-5965": "HPO-B 5965, 10-D",
    "hpob-5971": "HPO-B 5971, 16-D",
}
SKLEARN = {
    "sklearn-svm-digits": "SVM on digits (accuracy)",
    "sklearn-mlp-wine": "MLP on wine (-log loss)",
    "sklearn-forest-diabetes": "forest on diabetes (R²)",
}
FAMILIES = {
    "synthetic": "synthetic",
    "noise": "synthetic, other noise",
    "lcbench": "LCBench",
    "hpob": "HPO-B",
    "other": "other",
}
ACQUISITIONS = {"pes": "PES", "mes": "MES", "jes": "JES", "ei": "EI", "logei": "LogEI"}
COLUMNS = ("pes", "mes", "jes", "ei")
"""Acquisitions that are compared with each other: LogEI has EI's maximiser, GIBBON is a MES."""
MODELS = {
    "ours": "amortes",
    "fb": "fully Bayesian GP",
    "map": "MAP GP",
    "paper": "published α-PFN",
    "paper:fb": "published fully Bayesian GP",
    "other": "other",
}
OTHERS = {
    "random": "random search",
    "botorch": "BoTorch",
    "hebo": "HEBO",
    "map-lognei": "MAP GP noisy LogEI",
    "optuna-tpe": "Optuna TPE",
    "optuna-gp": "Optuna GP",
    "smac-bb": "SMAC GP",
    "smac-hpo": "SMAC forest",
}
SAME_COLUMN = {"logei": "ei", "gibbon": "mes"}
PLAIN_NOISE = 0.316


@dataclass(frozen=True, kw_only=True)
class Method:
    """A parsed name of a method."""

    name: str
    model: str  # a key of MODELS
    acquisition: str = ""  # as in the name: pes, mes, gibbon, jes, ei, logei; empty for "other"
    weights: str = ""  # after the @; empty for the default

    @property
    def column(self) -> str:
        """The acquisition it is compared under, one of COLUMNS; empty if there is none."""
        column = SAME_COLUMN.get(self.acquisition, self.acquisition)
        return column if column in COLUMNS else ""

    @property
    def weights_label(self) -> str:
        """The name of the weights; of a file, without folder and ending."""
        return PurePath(self.weights).name.removesuffix(".safetensors")

    @property
    def label(self) -> str:
        """For legends and tables."""
        if self.model == "other":
            return OTHERS.get(self.name, self.name)
        if self.acquisition == "gibbon":
            acquisition = "MES (GIBBON)"
        else:
            acquisition = ACQUISITIONS.get(self.acquisition, self.acquisition)
        weights = f" @{self.weights_label}" if self.weights else ""
        return f"{MODELS[self.model]} {acquisition}{weights}"


def parse_method(name: str) -> Method:
    """The model, acquisition and weights of a method's name."""
    rest, _, weights = name.partition("@")
    source, _, rest = rest.rpartition(":")
    model, _, acquisition = rest.rpartition("-")
    known = {
        ("", ""): "ours",
        ("", "fb"): "fb",
        ("", "map"): "map",
        ("paper", ""): "paper",
        ("paper", "fb"): "paper:fb",
    }
    if acquisition not in {*ACQUISITIONS, "gibbon"} or (source, model) not in known:
        return Method(name=name, model="other")
    return Method(name=name, model=known[source, model], acquisition=acquisition, weights=weights)


def same_acquisition(names: Iterable[str], acquisition: str, model: str) -> str | None:
    """The method of a model (default weights) with this acquisition, or the same maximiser."""
    column = Method(name="", model=model, acquisition=acquisition).column
    found = [method for method in map(parse_method, names) if method.model == model]
    found = [method for method in found if method.column == column and not method.weights]
    found.sort(key=lambda method: method.acquisition != acquisition)
    return found[0].name if column and found else None


def versus(ours: str, theirs: str) -> str:
    """`JES against MAP GP`; the rival's acquisition is said if it is another one."""
    our, their = parse_method(ours), parse_method(theirs)
    rival = MODELS[their.model] if our.acquisition == their.acquisition else their.label
    return f"{our.label.removeprefix('amortes ')} against {rival}"


def is_ours(name: str) -> bool:
    """Whether a method is one of ours with the default weights."""
    method = parse_method(name)
    return method.model == "ours" and not method.weights


def in_overview(name: str) -> bool:
    """Ours and what people use today: what fits into one figure."""
    return is_ours(name) or parse_method(name).model == "other" or name == "map-logei"


def canonical(problem: str) -> str:
    """One spelling per problem: `lcbench-Fashion-MNIST` is `lcbench-fashionmnist`."""
    head, dash, rest = problem.lower().partition("-")
    return head + dash + re.sub(r"[^a-z0-9]", "", rest) if head == "lcbench" else problem.lower()


def noise_of(problem: str) -> tuple[str, float | None]:
    """The problem without its `-noise0.5`, and that number; None if the name has none."""
    match = re.fullmatch(r"(.+)-noise([0-9.]+)", problem)
    return (match[1], float(match[2])) if match else (problem, None)


def family(problem: str) -> str:
    """A key of FAMILIES."""
    base, noise = noise_of(problem)
    if base in SYNTHETIC:
        return "synthetic" if noise is None else "noise"
    head = problem.split("-")[0]
    return head if head in ("lcbench", "hpob") else "other"


def panel(problem: str) -> str:
    """Problems of a panel are averaged: the tasks of an HPO-B space; others stand alone."""
    return "-".join(problem.split("-")[:2]) if family(problem) == "hpob" else problem


def panel_label(name: str) -> str:
    """For titles and tables."""
    base, noise = noise_of(name)
    label = {**SYNTHETIC, **LCBENCH, **HPOB, **SKLEARN}.get(base, base)
    return label if noise is None else f"{label}, noise {noise:g}"


def order_problems(problems: Iterable[str]) -> list[str]:
    """By family, then as in the paper, then by name."""
    known = [*SYNTHETIC, *LCBENCH, *HPOB, *SKLEARN]
    families = list(FAMILIES)

    def key(problem: str) -> tuple[int, int, str]:
        base = panel(noise_of(problem)[0])
        place = known.index(base) if base in known else len(known)
        return families.index(family(problem)), place, problem

    return sorted(set(problems), key=key)


def order_methods(methods: Iterable[str]) -> list[str]:
    """Ours (default weights first), fully Bayesian, MAP, published, others."""
    models, acquisitions = list(MODELS), [*COLUMNS, "logei", "gibbon", ""]

    def key(name: str) -> tuple[int, str, int, str]:
        method = parse_method(name)
        return (
            models.index(method.model),
            method.weights,
            acquisitions.index(method.acquisition),
            name,
        )

    return sorted(set(methods), key=key)
