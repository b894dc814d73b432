import math

import pytest
import torch
from torch import Tensor

from amortes.optimiser import Categorical, Float, Space
from amortes.optimiser.importance import importance
from amortes.random import generator


def test_shares_of_the_ishigami_function() -> None:
    # Total effects are known in closed form: Ishigami & Homma (1990).
    space = Space({"x1": Float(0, 1), "x2": Float(0, 1), "x3": Float(0, 1)})

    def ishigami(X: Tensor) -> Tensor:
        x1, x2, x3 = ((2 * X - 1) * math.pi).unbind(1)
        return x1.sin() + 7 * x2.sin() ** 2 + 0.1 * x3**4 * x1.sin()

    v1 = 0.5 * (1 + 0.1 * math.pi**4 / 5) ** 2
    v2 = 49 / 8
    v13 = 0.01 * math.pi**8 * (1 / 18 - 1 / 50)
    total = {"x1": v1 + v13, "x2": v2, "x3": v13}
    shares = importance(ishigami, space, generator(0))
    assert list(shares) == ["x1", "x2", "x3"]
    for name, value in total.items():
        assert shares[name] == pytest.approx(value / sum(total.values()), abs=0.04)


def test_a_parameter_has_all_its_coordinates() -> None:
    space = Space({"c": Categorical(["a", "b", "c", "d"]), "x": Float(0, 1), "unused": Float(0, 1)})
    shares = importance(lambda X: X[:, 1] * 2 + X[:, 4], space, generator(0))
    # Var(2 [c = b]) = 4 * 3/16, Var(x) = 1/12.
    assert shares["c"] == pytest.approx(0.75 / (0.75 + 1 / 12), abs=0.03)
    assert shares["unused"] == 0.0
    assert sum(shares.values()) == pytest.approx(1.0)


def test_nothing_matters_to_a_constant() -> None:
    space = Space({"x": Float(0, 1), "y": Float(0, 1)})
    assert importance(lambda X: torch.ones(len(X)), space, generator(0)) == {"x": 0.0, "y": 0.0}
