"""Learning curves of one or more runs, from their metrics."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from amortes.colours import BLUE, GREEN, GREY, ORANGE, PINK
from amortes.errors import FileError
from amortes.training.run import TrainingRun

COLOURS = (BLUE, ORANGE, GREEN, PINK, GREY)
WINDOW = 10
"""Logged losses averaged for the line; each is the mean of a few batches of different sizes."""


def draw_curves(runs: Sequence[TrainingRun]) -> Figure:
    """A panel per run: the loss in training, smoothed, and every score of the validations."""
    figure = Figure(figsize=(5.2 * len(runs), 3.6), layout="constrained")
    for run, ax in zip(runs, figure.subplots(1, len(runs), squeeze=False)[0], strict=True):
        lines = run.read_metrics()
        losses = [(line["step"], line["loss"]) for line in lines if "loss" in line]
        checks = [(line["step"], line["validation"]) for line in lines if "validation" in line]
        if not losses:
            raise FileError(f"{run.folder} has no metrics yet.")
        step, loss = np.array(losses).T
        window = min(WINDOW, len(loss))
        smooth = np.convolve(loss, np.full(window, 1 / window), mode="valid")
        ax.plot(step[window - 1 :], smooth, color="#999999", lw=1, label="loss, training")
        scores = [name for name in (checks[0][1] if checks else {}) if not name.endswith("target")]
        styles = [(style, colour) for style in ("o-", "s--") for colour in COLOURS]
        for name, (style, colour) in zip(scores, styles, strict=False):
            values = [check[name] for _, check in checks]
            label = f"{name.replace('_', ' ')}, validation"
            ax.plot([s for s, _ in checks], values, style, ms=3, lw=1.2, color=colour, label=label)
        recipe = run.recipe
        ax.set_title(f"{recipe.name}, {recipe.stage}, prior {recipe.prior.name}", fontsize=10)
        ax.set_xlabel("steps")
        ax.set_ylabel("nats; R² for r2")
        ax.grid(alpha=0.3)
        ax.legend(fontsize=7, frameon=False)
    return figure
