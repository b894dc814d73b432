import numpy as np
import torch

from amortes.prior.gp import PRIORS
from amortes.prior.prior_figure import draw_prior


def test_axes_show_paths_maxima_and_traces() -> None:
    state = torch.get_rng_state()
    figure = draw_prior(PRIORS["paper"], seed=1, context=9, count=2)
    axes = figure.axes
    assert len(axes) == 4
    (line,) = axes[0].get_lines()
    trace, star = (np.asarray(c.get_offsets()) for c in axes[0].collections)
    assert len(trace) == 9
    # The star is the top of the curve, up to the grid it is drawn on.
    assert abs(star[0, 1] - np.asarray(line.get_ydata()).max()) < 1e-3
    assert torch.equal(torch.get_rng_state(), state)
