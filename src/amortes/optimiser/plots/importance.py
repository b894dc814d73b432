"""The share of each parameter in how the posterior mean varies, as bars."""

from collections.abc import Mapping

from amortes.optimiser.plots.picture import Picture, Style, dress, labels

MOST = 30
"""Parameters that are shown, the most important ones."""


def draw_importance(shares: Mapping[str, float], style: Style) -> Picture:
    """The figure; shares are largest first."""
    shown = dict(list(shares.items())[:MOST])
    left = len(shares) - len(shown)
    names = labels(list(shown)) + [f"{left} others"] * (left > 0)
    sizes = [*shown.values()] + [sum(list(shares.values())[MOST:])] * (left > 0)
    picture = Picture(6.5, 0.9 + 0.32 * len(names), style)
    ax = picture.subplots()
    dress(ax, style, grid="x")
    bars = ax.barh(range(len(names)), sizes, color=style.model, height=0.62)
    ax.bar_label(
        bars, [_percent(size) for size in sizes], padding=3, color=style.text, fontsize="small"
    )
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0)
    ax.invert_yaxis()
    ax.set_xlim(0.0, 1.12 * max(sizes) or 1.0)
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set_xlabel("share in the variation of the expected value")
    return picture


def _percent(share: float) -> str:
    """Two digits, down to a tenth of a percent."""
    if 0.0 < share < 0.0005:
        return "< 0.1%"
    return f"{share:.1%}" if 0.0 < share < 0.0995 else f"{share:.0%}"
