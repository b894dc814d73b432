"""The qualitative figure of the paper: one function in 1-D, three ways to the acquisition.

Columns: the exact Gaussian process (brute force), Monte Carlo over the base network, the alpha
network. Rows: predictions, then PES, MES and JES. The last column's prediction is the base network
told the true optimum. Brute force is repeated in grey where others are compared with it.
"""

from collections.abc import Callable
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from amortes.colours import BLUE, GREEN, GREY, ORANGE
from amortes.nets.base import GAINS, Hint, Network
from amortes.nets.distributions import Predictive
from amortes.oracles.alpha_scores import monte_carlo_gains
from amortes.oracles.brute_force import BruteForceConfig, brute_force, rank_correlation
from amortes.oracles.smc import hyper_posterior
from amortes.prior.newton import maximise_paths
from amortes.prior.paths import Paths
from amortes.prior.traces import TraceConfig, Tracer
from amortes.random import derive_seeds, generator

QUERIES = 128
OPTIMA = 128
BANDS = ((0.9, 0.18), (0.5, 0.3))  # central intervals of a prediction and how opaque they are drawn


@torch.no_grad()
def draw_gains(
    network: Network[Any],
    *,
    seed: int,
    context: int,
    config: BruteForceConfig | None = None,
    on_repeat: Callable[[], object] = lambda: None,
) -> Figure:
    """Draw a function of the network's prior, and what `context` observations of it imply."""
    prior = network.prior
    seeds = derive_seeds(seed, context, count=2)
    hyper = prior.sample(seeds[:1], 1)
    path = Paths.sample(prior.kernel, hyper, seeds[1:], dtype=torch.float64)
    optimum, rng = maximise_paths(path), generator(seed, context)

    def observe(x: Tensor) -> Tensor:
        return path(x.double()) + hyper.noise_sd * torch.randn(1, generator=rng)

    traced, y = Tracer(1, 1, TraceConfig(kind="uniform"), rng).context(context, context, observe)
    X, y = traced.double(), y.double()
    Xq = torch.linspace(0.0, 1.0, QUERIES, dtype=torch.float64)[:, None]
    truth = brute_force(prior, X[0], y[0], Xq, seed, config, on_repeat)
    thin = torch.arange(OPTIMA) * len(truth.f_star) // OPTIMA
    state = network.condition(X, y)
    columns: list[tuple[str, str, Predictive, Tensor]] = [
        (
            "exact GP",
            BLUE,
            hyper_posterior(prior, X, y, generator(seed)).thinned(256).predict(Xq[None]),
            truth.gain,
        ),
        (
            "Monte Carlo over the base network",
            GREEN,
            network.predict(state, Xq[None]),
            monte_carlo_gains(network, X[0], y[0], Xq, truth.x_star[thin], truth.f_star[thin]),
        ),
        (
            "alpha network\n(prediction: base network told ★)",
            ORANGE,
            network.predict(state, Xq[None], Hint(optimum.x, optimum.f)),
            network.gain(state, Xq[None]).mean[0],
        ),
    ]
    figure = Figure(figsize=(12.0, 9.0), layout="constrained")
    axes = figure.subplots(4, 3, sharex=True)
    for column, (title, colour, prediction, gains) in enumerate(columns):
        top = axes[0, column]
        _prediction(top, Xq[:, 0], prediction, colour)
        top.plot(Xq[:, 0], path(Xq[None])[0], color="black", lw=1.0, ls="--", label="function")
        top.scatter(X[0, :, 0], y[0], s=14, color="black", zorder=3, label="observations")
        top.scatter(optimum.x[0], optimum.f, marker="*", s=120, color="black", zorder=4)
        top.set_title(title)
        top.sharey(axes[0, 0])
        for i, name in enumerate(GAINS):
            _gain(axes[i + 1, column], Xq[:, 0], gains[:, i], truth.gain[:, i], colour)
            axes[i + 1, 0].set_ylabel(f"{name.upper()} (nats)")
        axes[-1, column].set_xlabel("x")
    axes[0, 0].set_ylabel("y")
    axes[0, 0].legend(loc="best", fontsize=8, frameon=False)
    figure.suptitle(
        f"prior {prior.name}, {context} observations; dots: where to measure next; "
        "grey: exact; r: rank correlation with it"
    )
    return figure


def _prediction(ax: Axes, x: Tensor, prediction: Predictive, colour: str) -> None:
    def quantile(p: float) -> Tensor:
        return prediction.icdf(torch.full((1, len(x)), p, dtype=torch.float64))[0]

    for level, alpha in BANDS:
        low, high = quantile(0.5 - level / 2), quantile(0.5 + level / 2)
        ax.fill_between(x, low, high, color=colour, alpha=alpha, lw=0, label=f"{level:.0%} of y")
    ax.plot(x, prediction.mean[0], color=colour, lw=1.5)
    ax.margins(x=0.01)


def _gain(ax: Axes, x: Tensor, gain: Tensor, truth: Tensor, colour: str) -> None:
    if not torch.equal(gain, truth):
        ax.plot(x, truth, color=GREY, lw=1.2)
        r = rank_correlation(gain, truth)
        ax.annotate(f"r = {r:.2f}", (0.98, 0.95), xycoords="axes fraction", ha="right", va="top")
    ax.plot(x, gain, color=colour, lw=1.5)
    best = gain.argmax()
    ax.plot(x[best], gain[best], "o", color=colour, ms=6)
    ax.axhline(0.0, color="black", lw=0.5)
