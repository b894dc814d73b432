"""The curves of the alpha-PFN paper, as read off its figures, under the names of our results.

`data/paper-curves.json` says where the numbers come from. Methods are called `paper:jes` (the
alpha-PFN), `paper:fb-jes` (its fully Bayesian GP) and `paper:jes@uniform` (its trace ablation).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from amortes.bench.report.curves import Curve, Curves
from amortes.errors import FileError
from amortes.files import read_json

CURVES = (
    "synthetic_v1_inference_regret_appendix",
    "lcbench_accuracy_v1_appendix",
    "noise_ablation_hartmann_inference_regret",
    "clustering_ablation_inference_regret",
)
SEEDS = 30  # behind each of these curves
RANKS = "hpob_ranking_appendix"
WINS = ("synthetic_v1_inference_regret_win_rate", "lcbench_v1_win_rate", "hpob_win_rate")
MODELS = {"PFN": "paper:", "GP": "paper:fb-", "PFN_uniform": "paper:", "PFN_vs_GP": ""}


@dataclass(frozen=True)
class Published:
    """What the paper shows; everything is empty if it is not to be drawn."""

    curves: Curves = field(default_factory=dict)  # synthetic regret and LCBench accuracy
    ranks: Curves = field(default_factory=dict)  # by HPO-B space
    wins: Curves = field(default_factory=dict)  # alpha-PFN against GP, by acquisition


def load_published(path: Path | None = None) -> Published:
    """Read a file of published curves; without a path, the one that comes with the package."""
    if path is None:
        with as_file(files("amortes.bench") / "data" / "paper-curves.json") as shipped:
            return load_published(shipped)
    figures = read_json(path)
    if not isinstance(figures, dict):
        raise FileError(f"{path} is not a file of published curves: it has no names of figures.")
    figures = {name.removesuffix("_crc"): panels for name, panels in figures.items()}
    known = {*CURVES, RANKS, *WINS} & figures.keys()
    if not known:
        raise FileError(f"{path} has none of the figures {', '.join((*CURVES, RANKS, *WINS))}.")

    def merged(names: tuple[str, ...], count: float = math.nan) -> Curves:
        curves: Curves = {}
        for name in names:
            for title, methods in figures.get(name, {}).items():
                for method, curve in methods.items():
                    if not isinstance(curve, dict) or "mean" not in curve:
                        raise FileError(
                            f"{path}: the curve of {method} in panel {title!r} of {name} has no "
                            "`mean`."
                        )
                found = {_method(m): read_curve(curve, count) for m, curve in methods.items()}
                curves.setdefault(_problem(title, name), {}).update(found)
        return curves

    return Published(merged(CURVES, SEEDS), merged((RANKS,)), merged(WINS))


def read_curve(curve: Mapping[str, Any], count: float = math.nan) -> Curve:
    """From {"mean": [...], "sem": [...], "iter": [...]}; iterations count from 1 if not given.

    `count` is how many samples are behind each mean.
    """
    mean = np.array(curve["mean"], dtype=np.float64)
    return Curve(
        iteration=np.array(curve.get("iter", range(1, len(mean) + 1)), dtype=np.int64),
        mean=mean,
        error=np.array(curve.get("sem", np.full(len(mean), np.nan)), dtype=np.float64),
        count=np.full(len(mean), count, dtype=np.float64),
    )


def _problem(title: str, figure: str) -> str:
    """`Ackley (5D)`: ackley5-near; `Car (7D)`: lcbench-car; `ID=5527 (8D)`: hpob-5527."""
    match = re.fullmatch(r"(?:ID=)?(\w+) \((\d+)D\)(?:, sigma_n=([0-9.]+))?", title)
    if match is None:
        raise FileError(f"Panel {title!r} of the published figure {figure} has an unknown title.")
    name, d, noise = match[1].lower(), match[2], match[3]
    if figure.startswith(("lcbench", "hpob")):
        return f"{figure.split('_')[0]}-{name}"
    base = name if name == "branin" else name + d
    if name == "ackley":  # see `amortes.bench.problems.synthetic`
        base += "-near"
    return base if noise in (None, "0.316") else f"{base}-noise{noise}"


def _method(name: str) -> str:
    """`PFN-PES`: paper:pes; `GP-PES`: paper:fb-pes; `PFN_uniform-PES`: paper:pes@uniform."""
    model, _, acquisition = name.partition("-")
    if model not in MODELS:
        raise FileError(f"Published method {name!r} is not one of {', '.join(MODELS)}.")
    return MODELS[model] + acquisition.lower() + ("@uniform" if model.endswith("uniform") else "")
