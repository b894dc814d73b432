"""What a user gains: a model tuned and a noisy function optimised, by us and by what people use.

All methods of a seed begin with the same points and meet the same noise (`protocol`). Drawn is what
users look at: the best score so far of a scikit-learn model, and with noise the regret of the point
that a method recommends.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amortes.bench.methods.registry import method_factory
from amortes.bench.problems.registry import make_problem
from amortes.bench.protocol import optimise
from amortes.colours import BLUE, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = {"auto": "amortes", "optuna-tpe": "Optuna TPE", "random": "random search"}
COLOURS = {"auto": BLUE, "optuna-tpe": ORANGE, "random": GREY}
SMALLEST = 1e-6  # regrets below this are drawn as this


@dataclass(frozen=True)
class Scene:
    """A problem of the demo, and what is drawn of a run on it: a field of its records."""

    problem: str
    title: str
    label: str
    measure: str

    @property
    def logarithmic(self) -> bool:
        """Whether it is drawn on a logarithmic axis, as regrets are."""
        return self.measure == "regret"


SCENES = (
    Scene(
        "sklearn-boosting-diabetes",
        "Tuning gradient boosting (diabetes data, 6 parameters)",
        "best cross-validated R² so far",
        "simple_value",
    ),
    Scene(
        "hartmann6",
        "Hartmann-6 with noise (sd 0.316)",
        "regret of the recommended point",
        "regret",
    ),
)

Curves = dict[str, list[list[float]]]
"""For each method a curve for each seed: its measure after d, d + 1, ... observations."""


def run_scene(scene: Scene, evaluations: int, seeds: int, update: Callable[..., None]) -> Curves:
    """All methods on a problem; `update` hears of a `note` before and an `advance` after a run."""
    problem = make_problem(scene.problem)
    curves: Curves = {method: [] for method in METHODS}
    for seed in range(seeds):
        for method in METHODS:
            update(note=f"{scene.problem}, {METHODS[method]}, seed {seed}")
            factory = method_factory(method)
            records = optimise(problem, factory, seed=seed, iterations=evaluations)
            values = [getattr(record, scene.measure) for record in records]
            if scene.logarithmic:
                values = [max(value, SMALLEST) for value in values]
            curves[method].append(values)
            update(advance=1)
    return curves


def average(scene: Scene, values: list[float]) -> float:
    """The mean over seeds: of regrets the geometric one."""
    mean = statistics.geometric_mean if scene.logarithmic else statistics.fmean
    return mean(values)


def draw(results: list[tuple[Scene, Curves]], evaluations: int) -> "Figure":
    """One panel for each scene: runs thin, means thick."""
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(11.0, 4.4), layout="constrained")
    axes = figure.subplots(1, len(results), squeeze=False)[0]
    for ax, (scene, curves) in zip(axes, results, strict=True):
        for method, runs in curves.items():
            x = range(evaluations - len(runs[0]) + 1, evaluations + 1)
            for run in runs:
                ax.plot(x, run, color=COLOURS[method], lw=0.7, alpha=0.35)
            mean = [average(scene, list(column)) for column in zip(*runs, strict=True)]
            ax.plot(x, mean, color=COLOURS[method], lw=2.2, label=METHODS[method])
        ax.set_yscale("log" if scene.logarithmic else "linear")
        ax.set_title(scene.title, fontsize=11)
        ax.set_xlabel("evaluations")
        ax.set_ylabel(scene.label)
    axes[-1].legend(frameon=False)
    seeds = len(next(iter(results[0][1].values())))
    figure.suptitle(f"{seeds} seeds; the same first points and noise for all methods", fontsize=9)
    return figure
