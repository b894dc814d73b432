"""The curves of the alpha-PFN paper, as read off its figures, under the names of our results.

`data/paper-curves.json` says where the numbers come from. Methods are called `paper:jes` (the
alpha-PFN), `paper:fb-jes` (its fully Bayesian GP) and `paper:jes@uniform` (its trace ablation).
"""

import math
import re
from importlib.resources import as_file, files
from pathlib import Path

import pandas as pd

from amortes.bench.report.names import canonical
from amortes.errors import FileError
from amortes.files import read_json

FIGURES = (
    "synthetic_v1_inference_regret_appendix",
    "lcbench_accuracy_v1_appendix",
    "noise_ablation_hartmann_inference_regret",
    "clustering_ablation_inference_regret",
)
SEEDS = 30  # behind each of the curves
MODELS = {"PFN": "paper:", "GP": "paper:fb-", "PFN_uniform": "paper:"}


def load_published(path: Path | None = None) -> pd.DataFrame:
    """Curves of a file of published figures; without a path, the one that comes with the package.

    {figure: {title of a panel: {method: {"mean": [...], "sem": [...], "iter": [...]}}}}, where
    standard errors may be missing, and iterations that count from 1.
    """
    if path is None:
        with as_file(files("amortes.bench") / "data" / "paper-curves.json") as shipped:
            return load_published(shipped)
    file = read_json(path)
    named = file.items() if isinstance(file, dict) else ()
    figures = {name.removesuffix("_crc"): panels for name, panels in named}
    if figures.keys().isdisjoint(FIGURES):
        raise FileError(f"{path} has none of the figures {', '.join(FIGURES)}.")
    found = {}  # a curve that is in several figures counts once
    for figure in FIGURES:
        for title, methods in figures.get(figure, {}).items():
            panel = _problem(title, figure)
            for method, curve in methods.items():
                if not isinstance(curve, dict) or "mean" not in curve:
                    where = f"{method} in panel {title!r} of {figure}"
                    raise FileError(f"{path}: the curve of {where} has no `mean`.")
                columns = {
                    "panel": panel,
                    "method": _method(method),
                    "iteration": curve.get("iter", range(1, len(curve["mean"]) + 1)),
                    "mean": curve["mean"],
                    "standard_error": curve.get("sem", math.nan),
                    "samples": float(SEEDS),
                }
                found[panel, method] = pd.DataFrame(columns)
    return pd.concat(found.values(), ignore_index=True)


def _problem(title: str, figure: str) -> str:
    """`Ackley (5D)`: ackley5-near; `Car (7D)`: lcbench-car."""
    match = re.fullmatch(r"(\w+) \((\d+)D\)(?:, sigma_n=([0-9.]+))?", title)
    if match is None:
        raise FileError(f"Panel {title!r} of the published figure {figure} has an unknown title.")
    name, d, noise = match[1].lower(), match[2], match[3]
    if figure.startswith("lcbench"):
        return canonical(f"lcbench-{name}")
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
