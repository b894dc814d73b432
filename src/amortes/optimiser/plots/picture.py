"""A figure that notebooks show."""

import io
from typing import Any

from matplotlib.figure import Figure


class Picture(Figure):
    """A Matplotlib figure that is shown as the value of a notebook's cell, without pyplot."""

    def __init__(self, width: float, height: float, **options: Any) -> None:
        super().__init__(figsize=(width, height), layout="constrained", **options)

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=110)
        return out.getvalue()
