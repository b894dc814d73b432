import sys

import pytest
import torch

from amortes.bench.problems.botorch_functions import botorch_function, sobol_points, within
from amortes.errors import MissingExtraError


def test_points_of_the_cube_are_placed_in_the_box_and_never_beside_it() -> None:
    bounds = torch.tensor([[-1.0, 0.1], [1.0, 0.3]], dtype=torch.float64)
    X = torch.tensor([[0.0, 0.0], [0.25, 0.5], [1.0, 1.0]], dtype=torch.float64)
    expected = torch.tensor([[-1.0, 0.1], [-0.5, 0.2], [1.0, 0.3]], dtype=torch.float64)
    torch.testing.assert_close(within(bounds, X), expected)
    assert bool((within(bounds, X) <= bounds[1]).all())


def test_sobol_points_fill_the_cube_evenly_and_are_always_the_same() -> None:
    points = sobol_points(3, 512)
    assert torch.equal(points, sobol_points(3, 512))
    assert points.shape == (512, 3)
    # Each half of each coordinate has exactly half of them.
    assert (points < 0.5).sum(0).tolist() == [256] * 3


def test_functions_by_class() -> None:
    pytest.importorskip("botorch")
    assert botorch_function("Levy", 7).dim == 7
    assert botorch_function("Branin").bounds.dtype == torch.float64


def test_without_botorch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botorch", None)
    monkeypatch.setitem(sys.modules, "botorch.test_functions", None)
    with pytest.raises(MissingExtraError, match=r"Levy .*amortes\[bench\]"):
        botorch_function("Levy", 2)
