"""Figures of a run: `opt.plot()` is one page, `opt.plot.slices()` and others one picture each.

Matplotlib is imported when the first one is drawn: it takes as long as everything of ours together.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from amortes.device import on_cpu
from amortes.errors import DataError, require_int, shown
from amortes.threads import single_thread

if TYPE_CHECKING:
    from amortes.optimiser.insight import Insight
    from amortes.optimiser.plots.picture import Picture
    from amortes.optimiser.plots.style import StyleName
    from amortes.optimiser.plots.view import View


class Plots:
    """The figures of one optimiser, as Matplotlib figures; each is light or dark by `style`.

    Bands and bars are central intervals of probability 0.9. Results that are so bad that the others
    would look alike are triangles at the edge of the axis; the legend says how bad they are.
    """

    def __init__(self, optimizer: "Insight") -> None:
        self._optimizer = optimizer

    def __repr__(self) -> str:
        kinds = "convergence, slices, contour, importance, parallel, gain"
        return f"Plots of a run: call it for one page, or one of its methods {kinds}"

    @on_cpu()
    @single_thread()
    def __call__(self, *, style: "StyleName" = "light") -> "Picture":
        """One page: values by trial, and what the model expects along each parameter."""
        from amortes.optimiser.plots.page import draw_page

        return draw_page(self._view(style, model=None))

    @on_cpu()
    @single_thread()
    def convergence(self, *, style: "StyleName" = "light") -> "Picture":
        """Values by trial, the best so far, and what the recommended config is expected to give."""
        from amortes.optimiser.plots.convergence import draw_convergence

        return draw_convergence(self._view(style, model=None))

    @on_cpu()
    @single_thread()
    def slices(self, *names: str, style: "StyleName" = "light") -> "Picture":
        """What the model expects along parameters, all or those named, through the recommended.

        Results are fainter the further they are from the slice.
        """
        from amortes.optimiser.plots.slices import draw_slices

        view = self._view(style, model=True)
        return draw_slices(view, self._known(names, view.names, view.space.free))

    @on_cpu()
    @single_thread()
    def contour(self, x: str, y: str, *, style: "StyleName" = "light") -> "Picture":
        """What the model expects over two parameters, and how uncertain it is."""
        from amortes.optimiser.plots.contour import draw_contour

        view = self._view(style, model=True)
        self._known((x, y), view.names, view.space.free)
        if x == y:
            raise DataError(f"contour: needs two different parameters, not {x!r} twice.")
        return draw_contour(view, x, y)

    @on_cpu()
    def importance(self, *, style: "StyleName" = "light") -> "Picture":
        """The share of each parameter in how the expected value varies."""
        from amortes.optimiser.plots.importance import draw_importance
        from amortes.optimiser.plots.style import style_of

        return draw_importance(self._optimizer.importance(), style_of(style))

    @on_cpu()
    def parallel(self, *names: str, style: "StyleName" = "light") -> "Picture":
        """Every trial as a line across the parameters, all or those named, coloured by value."""
        from amortes.optimiser.plots.parallel import draw_parallel

        view = self._view(style, model=False)
        if not view.done:
            raise DataError("there is no result to draw yet; tell one first.")
        there = list(view.space.free)
        return draw_parallel(view, self._known(names, there, there))

    @on_cpu()
    def gain(self, *, most: int = 40, style: "StyleName" = "light") -> "Picture":
        """Information and improvement expected of each trial when it was asked for.

        The model is fitted again for each of them: of at most `most` trials, spread over the run.
        """
        from amortes.optimiser.plots.gain import draw_gain
        from amortes.optimiser.plots.style import style_of

        chosen, most = style_of(style), require_int("most", most, 1)
        trials = [trial for trial in self._optimizer.trials if trial.status != "withdrawn"]
        if not any(trial.status == "done" for trial in trials):
            raise DataError("there is no result to learn from yet; tell one first.")
        every = -(-len(trials) // most)
        some = trials[::-1][::every][::-1]  # the last one included
        return draw_gain([self._optimizer.explain(trial) for trial in some], chosen)

    def _view(self, style: "StyleName", *, model: bool | None) -> "View":
        """The run as it is now; with a model if it is needed (True), or there is one (None)."""
        from amortes.optimiser.plots.style import style_of
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
                        f"{name} is not part of the recommended config, through which slices and "
                        f"contours are drawn; use {', '.join(there)}."
                    )
                raise DataError(
                    f"no parameter {shown(name)} to draw; there are {', '.join(there)}."
                )
        return list(names) or there
