import itertools
from typing import Any

import pytest
import torch
from scipy import stats

from amortes.errors import ConfigError
from amortes.optimiser import Categorical, Float, Int, Linear, Space
from amortes.optimiser.design import sample, sobol_points
from amortes.random import generator

TRIANGLE = Space({"x": Float(0, 1), "y": Float(0, 2)}, [Linear({"x": 2.0, "y": 1.0}, upper=2.0)])


def test_samples_are_uniform_on_a_triangle() -> None:
    X = sample(TRIANGLE, 2000, generator(0))
    assert bool(TRIANGLE.feasible(X).all())
    # The first coordinate of a uniform point of the triangle has distribution 1 - (1 - x)^2.
    assert stats.kstest(X[:, 0].numpy(), lambda x: 1 - (1 - x) ** 2).pvalue > 0.01


def test_samples_of_a_pool_are_its_members() -> None:
    space = Space({"n": Int(1, 9)}, pool=[{"n": 2}, {"n": 7}])
    values = [space.decode(x)["n"] for x in sample(space, 100, generator(0))]
    assert set(values) == {2, 7}


def test_a_design_is_distinct_and_a_function_of_the_seed() -> None:
    first = torch.stack(list(itertools.islice(sobol_points(TRIANGLE, 5), 40)))
    again = torch.stack(list(itertools.islice(sobol_points(TRIANGLE, 5), 20)))
    other = torch.stack(list(itertools.islice(sobol_points(TRIANGLE, 6), 20)))
    assert torch.equal(first[:20], again)
    assert not torch.equal(first[:20], other)
    assert len(set(map(tuple, first.tolist()))) == 40
    assert bool(TRIANGLE.feasible(first).all())


def test_a_design_spreads_out() -> None:
    points = torch.stack(list(itertools.islice(sobol_points(Space({"x": Float(0, 1)}), 0), 8)))
    assert sorted((points[:, 0] * 8).long().tolist()) == list(range(8))


@pytest.mark.parametrize(
    "space",
    [
        Space({"n": Int(1, 3), "c": Categorical([0, 1])}),
        Space({"n": Int(1, 100)}, pool=[{"n": n} for n in (1, 5, 9, 33, 34, 100)]),
    ],
)
def test_a_design_of_a_finite_space_ends_with_all_of_it(space: Space) -> None:
    points = list(sobol_points(space, 0))
    assert len(points) == len({tuple(p.tolist()) for p in points}) == 6


def test_infeasible_constraints_are_said() -> None:
    space = Space({"x": Float(0, 1)}, [Linear({"x": 1.0}, upper=-1.0)])
    curved = Space({"x": Float(1, 2, log=True)}, [Linear({"x": 1.0}, upper=0.0)])
    for impossible, said in (
        (space, "no config satisfies them"),
        (curved, r"none of 13\d,\d+ random configs satisfies"),
    ):
        with pytest.raises(ConfigError, match=said):
            sample(impossible, 1, generator(0))
        with pytest.raises(ConfigError, match=said):
            next(sobol_points(impossible, 0))


def test_a_mixture_of_many_parts() -> None:
    # Of uniform points of the cube, one in 10! is under the simplex.
    names = [f"x{i}" for i in range(10)]
    space = Space({name: Float(0, 1) for name in names}, [Linear(dict.fromkeys(names, 1.0), 1.0)])
    X = sample(space, 400, generator(0))
    assert bool(space.feasible(X).all())
    # Uniform on the simplex the sum has distribution s^10, and each coordinate 1 - (1 - x)^10.
    assert stats.kstest(X.sum(1).numpy(), lambda s: s**10).pvalue > 0.01
    assert stats.kstest(X[:, 3].numpy(), lambda x: 1 - (1 - x) ** 10).pvalue > 0.01
    design = torch.stack(list(itertools.islice(sobol_points(space, 0), 12)))
    assert bool(space.feasible(design).all())
    assert torch.equal(design, torch.stack(list(itertools.islice(sobol_points(space, 0), 12))))


def test_some_coordinates_may_be_fixed() -> None:
    space = Space({"x": Float(0, 1), "c": Categorical(["a", "b", "c"]), "n": Int(1, 4)})
    fixed = space.coordinates({"x": 0.25, "c": "b"})
    for X in (
        sample(space, 50, generator(0), fixed),
        torch.stack(list(sobol_points(space, 0, fixed))),
    ):
        configs = [space.decode(x) for x in X]
        assert {(config["x"], config["c"]) for config in configs} == {(0.25, "b")}
        assert {config["n"] for config in configs} == {1, 2, 3, 4}
    # x alone would go on for ever: the design ends with what is left free.
    assert len(list(sobol_points(space, 0, fixed))) == 4


def test_a_pool_with_fixed_coordinates() -> None:
    pool = [{"n": n, "c": c} for n, c in [(1, "a"), (2, "b"), (3, "a"), (4, "b")]]
    space = Space({"n": Int(1, 4), "c": Categorical(["a", "b"])}, pool=pool)
    fixed = space.coordinates({"c": "b"})
    assert sorted(space.decode(x)["n"] for x in sobol_points(space, 0, fixed)) == [2, 4]
    assert {space.decode(x)["n"] for x in sample(space, 50, generator(0), fixed)} == {2, 4}


def test_walks_go_on_until_all_of_a_small_corner_is_found() -> None:
    # 8 numbers of 0..9 with a sum of at most 2: 1 + 8 + 8 + 28 of 10^8 configs.
    names = [f"n{i}" for i in range(8)]
    space = Space({n: Int(0, 9) for n in names}, [Linear(dict.fromkeys(names, 1.0), 2.0)])
    points = list(sobol_points(space, 0))
    assert len(points) == len({tuple(p.tolist()) for p in points}) > 30
    assert bool(space.feasible(torch.stack(points)).all())


def test_rare_configs_are_not_looked_for_without_end() -> None:
    calls = 0

    def rare(config: dict[str, Any]) -> bool:
        nonlocal calls
        calls += 1
        return bool(config["x"] < 1e-3)

    space = Space({"x": Float(0, 1)}, [rare])
    few = sample(space, 8, generator(0), draws=1000)
    assert len(few) < 8
    assert calls < 2500
    assert len(sample(space, 2, generator(0))) == 2
