"""Figures of a study in files: those of `opt.plot`, with the names and units of the study."""

import io

from amortes.lab.study import Snapshot, Study
from amortes.optimiser.optimizer import Optimizer


def drawn(study: Study, kind: str, *pair: str) -> bytes:
    """The run on one page, or two of its parameters, as a PNG, SVG or PDF file."""
    from amortes.optimiser.plots.picture import label  # Matplotlib takes a while to import

    def draw(optimizer: Optimizer, snapshot: Snapshot) -> bytes:
        about, out = snapshot.about, io.BytesIO()
        picture = optimizer.plot.contour(*pair) if pair else optimizer.plot()
        across = {label(name): _with_unit(name, unit) for name, unit in about.units.items()}
        upwards = across if pair else {"value": _with_unit(about.value, about.unit)}
        for ax in picture.axes:
            x, y = ax.get_xlabel(), ax.get_ylabel()
            ax.set_xlabel(label(across[x], 40) if x in across else x)
            ax.set_ylabel(label(upwards[y], 40) if y in upwards else y)
        picture.savefig(out, format=kind, dpi=150)
        return out.getvalue()

    return study.ask_model(("figure", kind, *pair), draw)


def _with_unit(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name
