"""The run on one page: values by trial, and what the model expects along each parameter."""

from amortes.optimiser.plots.convergence import add_convergence
from amortes.optimiser.plots.picture import Picture
from amortes.optimiser.plots.slices import add_slices, row_heights, shape
from amortes.optimiser.plots.view import View

WIDTH = 11.0
TOP = 3.2


def draw_page(view: View) -> Picture:
    """The figure; without a model, only the values."""
    if view.fitted is None:
        picture = Picture(WIDTH, TOP, view.style)
        picture.legend_above(add_convergence(picture.subplots(), view))
        return picture
    axes = [view.axis(name) for name in view.names]
    columns, rows = shape(len(axes))
    heights = row_heights(axes, WIDTH / columns)
    picture = Picture(WIDTH, 0.6 + TOP + sum(heights), view.style)
    outer = picture.add_gridspec(2, 1, height_ratios=[TOP, sum(heights)])
    legend = add_convergence(picture.add_subplot(outer[0]), view)
    legend = [handle for handle in legend if handle.get_label() != "result"]  # slices say more
    inner = outer[1].subgridspec(rows, columns, height_ratios=heights)
    legend += add_slices(picture, inner, view, axes, WIDTH / columns)
    picture.legend_above(legend)
    return picture
