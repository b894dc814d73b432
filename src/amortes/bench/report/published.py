"""The curves of the alpha-PFN paper, as read off its figures, under the names of our results.

`data/paper-curves.json` says where the numbers come from. Methods are called `paper:jes` (the
alpha-PFN), `paper:fb-jes` (its fully Bayesian GP) and `paper:jes@uniform` (its trace ablation).
"""

import math
import re
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pandas as pd

from amortes.bench.report.curves import NO_CURVES
from amortes.bench.report.names import canonical
from amortes.errors import FileError
from amortes.files import read_json

CURVES = (
    "synthetic_v1_inference_regret_appendix",
    "lcbench_accuracy_v1_appendix",
    "noise_ablation_hartmann_inference_regret",
    "clustering_ablation_inference_regret",
)
SEEDS = 30  # behind each of these curves
RANKS = ("hpob_ranking_appendix",)
WINS = ("synthetic_v1_inference_regret_win_rate", "lcbench_v1_win_rate", "hpob_win_rate")
MODELS = {"PFN": "paper:", "GP": "paper:fb-", "PFN_uniform": "paper:", "PFN_vs_GP": ""}


@dataclass(frozen=True, eq=False)
class Published:
    """What the paper shows; everything is empty if it is not to be drawn."""

    curves: pd.DataFrame = field(
        default_factory=NO_CURVES.copy
    )  # synthetic regret and LCBench accuracy
    ranks: pd.DataFrame = field(default_factory=NO_CURVES.copy)  # by HPO-B space
    wins: pd.DataFrame = field(
        default_factory=NO_CURVES.copy
    )  # alpha-PFN against GP, by acquisition


def load_published(path: Path | None = None) -> Published:
    """Read a file of published curves; without a path, the one that comes with the package."""
    if path is None:
        with as_file(files("amortes.bench") / "data" / "paper-curves.json") as shipped:
            return load_published(shipped)
    figures = read_json(path)
    if not isinstance(figures, dict):
        raise FileError(f"{path} is not a file of published curves: it has no names of figures.")
    figures = {name.removesuffix("_crc"): panels for name, panels in figures.items()}
    if not figures.keys() & {*CURVES, *RANKS, *WINS}:
        raise FileError(f"{path} has none of the figures {', '.join((*CURVES, *RANKS, *WINS))}.")

    def merged(names: tuple[str, ...], samples: float = math.nan) -> pd.DataFrame:
        curves = {}
        for name in names:
            for title, methods in figures.get(name, {}).items():
                panel = _problem(title, name)
                for method, curve in methods.items():
                    if not isinstance(curve, dict) or "mean" not in curve:
                        raise FileError(
                            f"{path}: the curve of {method} in panel {title!r} of {name} has no "
                            "`mean`."
                        )
                    key = panel, _method(method)
                    curves[key] = read_curve(*key, curve, samples)
        return pd.concat(curves.values(), ignore_index=True) if curves else NO_CURVES

    return Published(merged(CURVES, SEEDS), merged(RANKS), merged(WINS))


def read_curve(panel: str, method: str, curve: dict[str, Any], samples: float) -> pd.DataFrame:
    """From {"mean": [...], "sem": [...], "iter": [...]}; iterations count from 1 if not given."""
    mean = curve["mean"]
    return pd.DataFrame(
        {
            "panel": panel,
            "method": method,
            "iteration": curve.get("iter", range(1, len(mean) + 1)),
            "mean": pd.Series(mean, dtype=float),
            "standard_error": pd.Series(curve.get("sem", [math.nan] * len(mean)), dtype=float),
            "samples": float(samples),
        }
    )


def _problem(title: str, figure: str) -> str:
    """`Ackley (5D)`: ackley5-near; `Car (7D)`: lcbench-car; `ID=5527 (8D)`: hpob-5527."""
    match = re.fullmatch(r"(?:ID=)?(\w+) \((\d+)D\)(?:, sigma_n=([0-9.]+))?", title)
    if match is None:
        raise FileError(f"Panel {title!r} of the published figure {figure} has an unknown title.")
    name, d, noise = match[1].lower(), match[2], match[3]
    if figure.startswith(("lcbench", "hpob")):
        return canonical(f"{figure.split('_')[0]}-{name}")
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
