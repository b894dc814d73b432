"""Numbers as users give them: of Python, NumPy, PyTorch or any library whose objects have a float.

Everything that is told, and every value in a config, comes through `as_float`.
"""

import math
from typing import Any

import numpy as np
from torch import Tensor

NUMERIC_KINDS = "biuf"  # of NumPy types: bool, int, unsigned, float


def as_float(value: Any) -> float | None:
    """The real number as Python's float, or None if it is none.

    Arrays and tensors count if they have exactly one element. Text, bytes, complex numbers and
    lists do not count. An integer too large for a float is infinite.
    """
    if isinstance(value, Tensor):
        if value.numel() != 1 or value.is_complex() or value.is_meta:
            return None
        value = value.detach()
    elif isinstance(value, np.ndarray | np.generic):
        if value.size != 1 or value.dtype.kind not in NUMERIC_KINDS:
            return None
        value = value.item()
    # Also keeps out what float() reads as text: str, bytes, and other buffers.
    if not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except Exception:  # whatever another library raises where it has no number
        return None
