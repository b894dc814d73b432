"""Figures of a run: `opt.plot()` is one page, `opt.plot.slices()` and others one picture each.

Matplotlib is imported when the first one is drawn: it takes as long as everything of ours together.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from amortes.errors import DataError, require_int, shown
from amortes.threads import on_cpu

if TYPE_CHECKING:
    from amortes.optimiser.insight import Insight
    from amortes.optimiser.plots.picture import Picture, StyleName
    from amortes.optimiser.plots.view import View


class Plots:
    """The figures of a run, as Matplotlib figures. All take `style="light"` or `style="dark"`.

    Bands and bars are central 90 % intervals. Triangles at the edge of an axis are results so bad
    that the others would look alike; the legend says how bad they are.
    """

    def __init__(self, optimizer: "Insight") -> None:
        self._optimizer = optimizer

    def __repr__(self) -> str:
        kinds = "convergence, slices, contour, importance, parallel, gain"
        return f"Plots of a run: call it for one page, or one of its methods {kinds}"

    @on_cpu()
    def __call__(self, *, style: "StyleName" = "light") -> "Picture":
        """Draw one page: values by trial, and the prediction along each parameter."""
        from amortes.optimiser.plots.slices import draw_page

        return draw_page(self._view(style, model=None))

    @on_cpu()
    def convergence(self, *, style: "StyleName" = "light") -> "Picture":
        """Draw values by trial, the best so far, and the prediction for the recommended config."""
        from amortes.optimiser.plots.trials import draw_convergence

        return draw_convergence(self._view(style, model=None))

    @on_cpu()
    def slices(self, *names: str, style: "StyleName" = "light") -> "Picture":
        """Draw the prediction along the named parameters, or all, through the recommended config.

        The further a result is from the slice, the fainter it is drawn.
        """
        from amortes.optimiser.plots.slices import draw_slices

        view = self._view(style, model=True)
        return draw_slices(view, self._known(names, view.names, view.space.free))

    @on_cpu()
    def contour(self, x: str, y: str, *, style: "StyleName" = "light") -> "Picture":
        """Draw the prediction over two parameters, and its uncertainty."""
        from amortes.optimiser.plots.contour import draw_contour

        view = self._view(style, model=True)
        self._known((x, y), view.names, view.space.free)
        if x == y:
            raise DataError(f"contour: needs two different parameters, not {x!r} twice.")
        return draw_contour(view, x, y)

    @on_cpu()
    def importance(self, *, style: "StyleName" = "light") -> "Picture":
        """Draw how much each parameter matters; see `Optimizer.importance`."""
        from amortes.optimiser.plots.importance import draw_importance
        from amortes.optimiser.plots.picture import style_of

        return draw_importance(self._optimizer.importance(), style_of(style))

    @on_cpu()
    def parallel(self, *names: str, style: "StyleName" = "light") -> "Picture":
        """Draw every trial as a line across the named parameters, or all, coloured by value."""
        from amortes.optimiser.plots.parallel import draw_parallel

        view = self._view(style, model=False)
        if not view.done:
            raise DataError("there is no result to draw yet; tell one first.")
        there = list(view.space.free)
        return draw_parallel(view, self._known(names, there, there))

    @on_cpu()
    def gain(self, *, most: int = 40, style: "StyleName" = "light") -> "Picture":
        """Draw the information and the improvement expected of each trial when it was suggested.

        The model is fitted again for each of them, so at most `most` trials, spread over the run,
        are drawn.
        """
        from amortes.optimiser.plots.picture import style_of
        from amortes.optimiser.plots.trials import draw_gain

        chosen, most = style_of(style), require_int("most", most, 1)
        trials = [trial for trial in self._optimizer.trials if trial.status != "withdrawn"]
        if not any(trial.status == "done" for trial in trials):
            raise DataError("there is no result to learn from yet; tell one first.")
        every = -(-len(trials) // most)
        some = trials[::-1][::every][::-1]  # the last one included
        return draw_gain([self._optimizer.explain(trial) for trial in some], chosen)

    def _view(self, style: "StyleName", *, model: bool | None) -> "View":
        """The run as it is now; with a model if it is needed (True), or there is one (None)."""
        from amortes.optimiser.plots.picture import style_of
        from amortes.optimiser.plots.view import View

        colours = style_of(style)
        optimizer = self._optimizer
        with optimizer._lock:
            fitted = recommendation = None
            if model or (model is None and optimizer._ledger.having("done")):
                fitted = optimizer._suggester.fitted()
                recommendation = optimizer.recommend()
            return View(
                optimizer.trials,
                optimizer.space,
                optimizer.goal == "maximize",
                colours,
                optimizer.past,
                fitted,
                recommendation,
            )

    @staticmethod
    def _known(names: Sequence[str], there: list[str], free: Collection[str]) -> list[str]:
        """The parameters that are asked for, or all; a `DataError` if there are no such."""
        for name in names:
            if name not in there:
                if name in free:
                    raise DataError(
                        f"{name} is not part of the recommended config, so there is nothing to "
                        f"draw along it; choose from {', '.join(there)}."
                    )
                raise DataError(
                    f"no parameter {shown(name)} to draw; choose from {', '.join(there)}."
                )
        return list(names) or there
