import math
import sys
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import torch

from amortes.bench.problems.synthetic import (
    FUNCTIONS,
    Synthetic,
    botorch_function,
    sobol_points,
    within,
)
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


pytest.importorskip("botorch")


def test_values_are_those_of_the_textbook() -> None:
    U = torch.rand(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x, z = 15 * U[:, 0] - 5, 15 * U[:, 1]
    inner = z - 5.1 * x**2 / (4 * math.pi**2) + 5 * x / math.pi - 6
    branin = inner**2 + 10 * (1 - 1 / (8 * math.pi)) * x.cos() + 10
    torch.testing.assert_close(Synthetic("branin").value(U), -branin)
    X = torch.rand(5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    z = 65.536 * X - 32.768
    first = 20 * torch.exp(-0.2 * z.square().mean(-1).sqrt())
    ackley = 20 + math.e - first - torch.exp((2 * math.pi * z).cos().mean(-1))
    torch.testing.assert_close(Synthetic("ackley8").value(X), -ackley)
    inside = 0.5 + (X - 0.5) * 15.0 / 32.768
    torch.testing.assert_close(
        Synthetic("ackley8-near").value(X), Synthetic("ackley8").value(inside)
    )


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_the_highest_value_is_reached_and_not_exceeded(name: str) -> None:
    problem = Synthetic(name)
    assert problem.best is not None
    X = torch.rand(4000, problem.d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    X = torch.cat([X, torch.full((1, problem.d), 0.5, dtype=torch.float64)])
    values = problem.value(X)
    assert values.shape == (4001,)

    def loss(u: np.ndarray) -> float:
        return -float(problem.value(torch.from_numpy(u)[None]))

    found = []
    for x in X[values.topk(6).indices].numpy():
        ended: Any = scipy.optimize.minimize(
            loss,
            x,
            bounds=[(0.0, 1.0)] * problem.d,
            method="L-BFGS-B",
            options={"ftol": 1e-14, "gtol": 1e-9},
        )
        found.append(-float(ended.fun))
    # The six-digit tables of some versions of BoTorch are stored as float32.
    assert max(found) == pytest.approx(problem.best, abs=2e-7)


def test_the_noise_is_in_the_name() -> None:
    assert Synthetic("hartmann6").noise_sd == 0.316
    noisy = Synthetic("hartmann6-noise0.5")
    assert (noisy.noise_sd, noisy.d, noisy.name) == (0.5, 6, "hartmann6-noise0.5")
    assert noisy.best == Synthetic("hartmann6").best
    assert Synthetic("ackley5-near-noise0.5").noise_sd == 0.5


def test_the_corners_are_inside() -> None:
    for name in FUNCTIONS:
        problem = Synthetic(name)
        ends = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, problem.d)
        assert problem.value(ends).isfinite().all()
