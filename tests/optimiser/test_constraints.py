import numpy as np
import pytest
import torch

from amortes.errors import ConfigError
from amortes.optimiser import Allowed, Categorical, Float, Int, Linear, Space
from amortes.random import generator


def test_where_a_linear_constraint_is_satisfied() -> None:
    constraint = Linear({"a": 1.0, "b": -2.0}, upper=3.0)
    a, b = np.array([3.0, 4.0, 0.0]), np.array([0.0, 0.0, -2.0])
    assert constraint.mask({"a": a, "b": b}, 3).tolist() == [True, False, False]


def test_rows_in_the_cube_agree_with_the_constraint_on_configs() -> None:
    space = Space(
        {"x": Float(-3, 5), "n": Int(2, 9), "free": Float(0, 1)},
        [Linear({"x": 2.0, "n": 1.0}, upper=8.0), Linear({"n": -1.0}, upper=-3.0)],
    )
    X = space.project(torch.rand(500, 3, generator=generator(0), dtype=torch.float64))
    A, b = space.rows
    configs = [space.decode(x) for x in X]
    expected = [2 * c["x"] + c["n"] <= 8 + 1e-9 and c["n"] >= 3 for c in configs]
    assert (X @ A.mT <= b + 1e-9).all(1).tolist() == expected
    assert space.feasible(X).tolist() == expected
    assert 0.1 < sum(expected) / 500 < 0.9


def test_a_boundary_point_is_feasible_after_decoding() -> None:
    space = Space({"x": Float(0.1, 0.7), "y": Float(0.1, 0.7)}, [Linear({"x": 1, "y": 1}, 0.8)])
    for x in (0.1, 0.3, 1 / 3, 0.7):
        assert bool(space.feasible(space.encode({"x": x, "y": 0.8 - x})[None]))


def test_constraints_on_logarithmic_parameters_are_curved_in_the_cube() -> None:
    space = Space({"x": Float(0.01, 1, log=True), "y": Float(0, 1)}, [Linear({"x": 1, "y": 1}, 1)])
    assert len(space.rows[0]) == 0
    X = torch.rand(200, 2, generator=generator(0), dtype=torch.float64)
    expected = [c["x"] + c["y"] <= 1 for c in map(space.decode, X)]
    assert space.feasible(X).tolist() == expected


def test_constants_are_taken_to_the_right_side() -> None:
    parameters = {"layers": Int(1, 8), "width": 32, "act": "relu"}
    space = Space(parameters, [Linear({"layers": 8, "width": 1}, upper=64)])
    assert space.constraints == (Linear({"layers": 8}, upper=32),)
    assert space.allows({"layers": 4})
    assert not space.allows({"layers": 5})
    with pytest.raises(ConfigError, match="act is fixed, so its value must be a finite number"):
        Space(parameters, [Linear({"layers": 8, "act": 1}, upper=64)])


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e12, 1e99])
def test_the_size_of_the_coefficients_does_not_matter(size: float) -> None:
    def sums(size: float) -> list[float]:
        space = Space(
            {"x": Float(0, 1), "y": Float(0, 1)}, [Linear({"x": size, "y": size}, 1e-3 * size)]
        )
        return [float(x.sum()) for x in space.domain().walk(20, 0)]

    assert sums(size) == pytest.approx(sums(1.0), rel=1e-6)
    assert 0 < min(sums(size)) < max(sums(size)) < 1e-3


def test_functions_return_bools() -> None:
    space = Space({"x": Float(0, 1)}, [lambda config: config["x"]])
    with pytest.raises(ConfigError, match=r"<lambda>\(.*\) must return True or False, not 0.5"):
        space.allows({"x": 0.5})
    assert Allowed(lambda config: np.bool_(True)).allows({})
    space = Space({"x": Float(0, 1)}, [Allowed(lambda values: True, vectorized=True)])
    with pytest.raises(ConfigError, match=r"array of 1 bools, not of bool and shape \(\)"):
        space.allows({"x": 0.5})


def test_what_functions_raise_is_said() -> None:
    space = Space({"x": Float(0, 1)}, [lambda config: bool(config["y"])])
    with pytest.raises(ConfigError, match=r"<lambda>\(\{'x': 0.5\}\) raised KeyError\('y'\)"):
        space.allows({"x": 0.5})


def test_functions_see_the_very_values() -> None:
    # 0.42 does not survive the way to its coordinate and back.
    space = Space({"x": Float(0.1, 1.3)}, [lambda config: config["x"] <= 0.42])
    assert space.allows({"x": 0.42})
    vectorised = Allowed(lambda values: values["x"] <= 0.42, vectorized=True)
    assert Space({"x": Float(0.1, 1.3)}, [vectorised]).allows({"x": 0.42})


def test_a_constraint_holds_where_its_parameters_are_active() -> None:
    branches = Categorical({"a": {"n": Int(1, 9), "k": Float(0, 1)}, "b": {}})
    space = Space({"c": branches, "x": Float(0, 9)}, [Linear({"n": 1.0, "x": 1.0}, upper=5.0)])
    assert not space.allows({"c": "a", "n": 5, "k": 0.0, "x": 1.0})
    assert space.allows({"c": "a", "n": 4, "k": 0.0, "x": 1.0})
    assert space.allows({"c": "b", "x": 9.0})
    assert len(space.rows[0]) == 0
