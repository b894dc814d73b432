import numpy as np
import pytest
from matplotlib.collections import LineCollection

from amortes.errors import DataError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Categorical, Float, Optimizer
from amortes.optimiser.plots.parallel import UNUSED


def test_a_line_for_each_trial(opt: Optimizer) -> None:
    figure = opt.plot.parallel("lr", "act")
    results, best, failed, infeasible = (
        c for c in figure.axes[0].collections if isinstance(c, LineCollection)
    )
    assert [len(c.get_segments()) for c in (results, best, failed, infeasible)] == [9, 1, 1, 1]
    space, config = opt.space, opt.best.config
    line = np.asarray(best.get_segments()[0])
    assert line[0].tolist() == [0.0, space.free["lr"].encode(config["lr"])[0]]
    assert line[1].tolist() == [1.0, (["relu", "gelu", "tanh"].index(config["act"]) + 0.5) / 3]
    assert np.asarray(results.get_segments()[-1]) == pytest.approx(line)  # on top of the others
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["lr", "act"]


@pytest.mark.parametrize("style", ["light", "dark"])
def test_the_best_stand_out(network: KernelNetwork, style: str) -> None:
    for goal, sign in (("minimize", 1.0), ("maximize", -1.0)):
        opt = Optimizer({"x": Float(0, 1), "c": Categorical(range(50))}, goal, network=network)  # type: ignore[arg-type]
        for i in range(4):
            opt.tell({"x": i / 4, "c": 10 * i}, sign * i)
        figure = opt.plot.parallel(style=style)  # type: ignore[arg-type]
        lines = next(c for c in figure.axes[0].collections if isinstance(c, LineCollection))
        assert np.isfinite(np.concatenate(lines.get_segments())).all()  # all choices have places
        bright = np.asarray(lines.get_color())[:, :3].sum(1)  # the best are last
        assert (bright[-1] < bright[0]) == (style == "light")


def test_nothing_to_draw(network: KernelNetwork) -> None:
    with pytest.raises(DataError, match="no result to draw yet"):
        Optimizer({"x": Float(0, 1)}, network=network).plot.parallel()


def test_lines_pass_below_parameters_that_a_config_does_not_have(network: KernelNetwork) -> None:
    space = {"m": Categorical({"a": {"p": Float(0, 1)}, "b": {}}), "x": Float(0, 1)}
    opt = Optimizer(space, network=network)
    opt.tell({"m": "b", "x": 0.25}, 1.0)
    opt.tell({"m": "a", "p": 0.5, "x": 0.75}, 2.0)
    figure = opt.plot.parallel()
    lines = next(c for c in figure.axes[0].collections if isinstance(c, LineCollection))
    long, short = lines.get_segments()
    assert np.asarray(long).tolist() == [[0.0, 0.25], [1.0, 0.5], [2.0, 0.75]]
    assert np.asarray(short).tolist() == [[0.0, 0.75], [1.0, UNUSED], [2.0, 0.25]]
    assert [t.get_text() for t in figure.axes[0].texts].count("unused") == 1
    assert figure.axes[0].get_ylim()[0] < UNUSED < 0
