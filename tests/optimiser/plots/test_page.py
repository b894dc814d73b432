import io
from typing import Any

import pytest

from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import Categorical, Float, Int, Optimizer, Ordinal

EXTREME = {
    "tiny": Float(0, 1e-300),
    "huge": Float(-1e307, 1e307),
    "log": Float(1e-300, 1e300, log=True),
    "narrow": Float(1e15, 1e15 + 2),
    "\ud800 $x_ \n": Int(-(2**47), 2**47),
}
MANY = {"$x_$": Categorical([rf"^\d+${i}$" for i in range(90)]), "o": Ordinal(range(200))}


def test_values_above_slices(opt: Optimizer) -> None:
    figure = opt.plot()
    assert [ax.get_xlabel() for ax in figure.axes] == ["trial", "lr", "layers", "width", "act"]
    figure.draw_without_rendering()
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert len([text for text in texts if text.startswith("result")]) == 1
    lowest = legend.get_window_extent().y0
    boxes: list[Any] = [ax.get_tightbbox() for ax in figure.axes]
    assert all(box.y1 <= lowest for box in boxes)


def test_without_results_there_are_only_the_values(network: KernelNetwork) -> None:
    opt = Optimizer({"x": Float(0, 1)}, network=network)
    assert len(opt.plot().axes) == 1
    opt.tell(opt.ask(), failed=True)
    (ax,) = opt.plot().axes
    assert ax.get_title(loc="left") == "0 results, 1 failed"


@pytest.mark.parametrize("space", [EXTREME, MANY], ids=["extreme", "many"])
@pytest.mark.parametrize("size", [1.0, 1e99, 1e-99])
def test_extreme_ranges_names_and_values(
    network: KernelNetwork, space: dict[str, Float], size: float
) -> None:
    opt = Optimizer(space, network=network, acquisition="logei")
    for i in range(5):
        opt.tell(opt.ask(), size * (i % 3))
    figure = opt.plot()
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    first, *slices = figure.axes
    assert len(slices) == len(space)
    low, high = first.get_ylim()
    assert low < 0.0 < 2.0 * size < high  # every result is on the axis
    assert all(len({t.get_text() for t in ax.get_xticklabels()}) >= 2 for ax in slices)
