import subprocess
import sys
from typing import Any

import pytest

from amortes.errors import ConfigError, DataError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Categorical, Float, Optimizer, minimize
from amortes.optimiser.plots.picture import STYLES

KINDS = ("convergence", "slices", "importance", "parallel", "gain")


@pytest.mark.parametrize("style", list(STYLES))
def test_every_figure_in_every_style(opt: Optimizer, style: Any) -> None:
    background = STYLES[style].background
    figures = [opt.plot(style=style), opt.plot.contour("lr", "layers", style=style)]
    figures += [getattr(opt.plot, kind)(style=style) for kind in KINDS]
    for figure in figures:
        assert figure.get_facecolor() == pytest.approx(figure.axes[0].get_facecolor())
        assert figure.style.background == background
        figure.draw_without_rendering()
        for legend in figure.legends:
            assert legend.get_window_extent().y0 >= max(
                ax.get_window_extent().y1 for ax in figure.axes
            )


def test_names_and_styles_are_checked(opt: Optimizer) -> None:
    with pytest.raises(DataError, match="no parameter 'x' to draw; choose from lr, layers"):
        opt.plot.slices("x")
    with pytest.raises(DataError, match="no parameter 'seed'"):
        opt.plot.contour("lr", "seed")
    with pytest.raises(DataError, match="two different parameters"):
        opt.plot.contour("lr", "lr")
    with pytest.raises(DataError, match="no parameter"):
        opt.plot.parallel("y")
    wrong: Any = "blue"
    for kind in KINDS:
        with pytest.raises(ConfigError, match="style"):
            getattr(opt.plot, kind)(style=wrong)


def test_a_parameter_outside_the_recommended_config_is_named(network: KernelNetwork) -> None:
    opt = Optimizer({"m": Categorical({"a": {"p": Float(0, 1)}, "b": {}})}, network=network)
    for p in (0.2, 0.4, 0.6):
        opt.tell({"m": "a", "p": p}, 1.0 + p)
        opt.tell({"m": "b"}, 0.0)
    with pytest.raises(DataError, match="p is not part of the recommended config"):
        opt.plot.contour("m", "p")


def test_its_repr_names_the_figures(opt: Optimizer) -> None:
    assert all(kind in repr(opt.plot) for kind in (*KINDS, "contour"))


def test_what_needs_a_model(network: KernelNetwork) -> None:
    plot = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, network=network).plot
    for kind, names in (("slices", ()), ("importance", ()), ("gain", ()), ("contour", ("x", "y"))):
        with pytest.raises(DataError, match="no result"):
            getattr(plot, kind)(*names)
    assert len(plot.convergence().axes) == 1


def test_results_have_them_too(network: KernelNetwork) -> None:
    space = {"x": Float(0, 1)}
    result = minimize(lambda c: c["x"], space, 3, network=network, progress=False)
    assert len(result.plot().axes) == 2
    assert len(result.plot.convergence().axes) == 1


def test_matplotlib_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, amortes.optimiser; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
