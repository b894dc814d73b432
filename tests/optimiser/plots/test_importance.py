from amortes.optimiser import Optimizer
from amortes.optimiser.plots.importance import MOST, draw_importance
from amortes.optimiser.plots.picture import STYLES


def test_bars_are_the_shares(opt: Optimizer) -> None:
    (ax,) = opt.plot.importance().axes
    shares = opt.importance()
    assert [bar.get_width() for bar in ax.patches] == list(shares.values())  # type: ignore[attr-defined]
    assert [text.get_text() for text in ax.get_yticklabels()] == list(shares)
    top, bottom = ax.patches[0].get_y(), ax.patches[-1].get_y()  # type: ignore[attr-defined]
    assert ax.transData.transform((0, top))[1] > ax.transData.transform((0, bottom))[1]


def test_many_and_none() -> None:
    shares = {f"p{i}": 1 / 50 for i in range(50)}
    (ax,) = draw_importance(shares, STYLES["dark"]).axes
    assert len(ax.patches) == MOST + 1
    assert ax.get_yticklabels()[-1].get_text() == "20 others"
    (ax,) = draw_importance({"x": 0.0, "y": 0.0}, STYLES["light"]).axes
    assert ax.get_xlim() == (0.0, 1.0)


def test_small_shares_are_not_none() -> None:
    (ax,) = draw_importance({"a": 0.95, "b": 0.0496, "c": 0.0004, "d": 0.0}, STYLES["light"]).axes
    assert [text.get_text() for text in ax.texts] == ["95%", "5.0%", "< 0.1%", "0%"]
