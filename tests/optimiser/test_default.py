import pytest

from amortes.errors import FileError
from amortes.optimiser import Float, Optimizer


def test_without_weights_the_way_out_is_said() -> None:
    with pytest.raises(FileError, match="pass a network"):
        Optimizer({"x": Float(0, 1)})
