"""A figure of the prior: sample paths, their maxima, and the synthetic traces over them."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from amortes.colours import BLUE, GREY, ORANGE
from amortes.prior.gp import GPPrior
from amortes.prior.newton import Optimum, maximise_paths
from amortes.prior.paths import Paths
from amortes.prior.traces import TraceConfig, Tracer
from amortes.random import derive_seeds, generator


def draw_prior(prior: GPPrior, *, seed: int, context: int, count: int = 4) -> Figure:
    """Paths in 1-D (upper row) and, if the prior has them, in 2-D (lower row)."""
    dims = [d for d in (1, 2) if prior.min_dim <= d <= prior.max_dim]
    figure = Figure(figsize=(3.2 * count, 3.0 * len(dims) + 0.6), layout="constrained")
    axes = figure.subplots(len(dims), count, squeeze=False)
    for row, d in zip(axes, dims, strict=True):
        seeds = derive_seeds(seed, d, count=2 * count)
        hyper = prior.sample(seeds[:count], d)
        paths = Paths.sample(prior.kernel, hyper, seeds[count:])
        optimum = maximise_paths(paths)
        X, y = _trace(paths, hyper.noise_sd, context, generator(seed, d))
        for i, ax in enumerate(row):
            draw = _line if d == 1 else _surface
            draw(ax, paths[i : i + 1], Optimum(optimum.x[i], optimum.f[i]), X[i], y[i])
            lengthscale = ", ".join(f"{v:.2f}" for v in hyper.lengthscale[i])
            ax.set_title(f"lengthscale {lengthscale}; noise {hyper.noise_sd[i]:.3f}", fontsize=8)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"prior {prior.name}: paths, maxima and {context}-point traces")
    return figure


def _trace(
    paths: Paths, noise_sd: Tensor, context: int, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """A synthetic trace over each path: points `b x n x d` and observations `b x n`."""
    sd = noise_sd.to(paths.dtype)[:, None]

    def observe(x: Tensor) -> Tensor:
        return paths(x) + sd * torch.randn(paths.b, 1, generator=rng, dtype=paths.dtype)

    return Tracer(paths.b, paths.d, TraceConfig(), rng).context(context, context, observe)


def _line(ax: Axes, path: Paths, optimum: Optimum, X: Tensor, y: Tensor) -> None:
    grid = torch.linspace(0, 1, 400, dtype=path.dtype)
    ax.plot(grid, path(grid[None, :, None])[0], color=BLUE, lw=1.5, label="sample path")
    ax.scatter(X[:, 0], y, s=14, color=GREY, zorder=3, label="synthetic trace")
    ax.scatter(
        optimum.x, optimum.f[None], marker="*", s=140, color=ORANGE, zorder=4, label="maximum"
    )
    ax.set_xlabel("x")
    ax.margins(x=0.02)


def _surface(ax: Axes, path: Paths, optimum: Optimum, X: Tensor, y: Tensor) -> None:
    side = torch.linspace(0, 1, 60, dtype=path.dtype)
    grid = torch.cartesian_prod(side, side)
    values = path(grid[None])[0].reshape(60, 60)
    ax.contourf(side, side, values.T, levels=14, cmap="Blues")
    colours = torch.linspace(0.2, 1.0, len(X))
    ax.scatter(X[:, 0], X[:, 1], s=16, c=colours, cmap="Greys", edgecolor="k", lw=0.4, vmin=0)
    ax.scatter(optimum.x[:1], optimum.x[1:], marker="*", s=140, color=ORANGE, edgecolor="k", lw=0.4)
    ax.set_xlabel("$x_1$")
    ax.set_ylabel("$x_2$")
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
