import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import torch

from amortes.bench.problems.classic import (
    FUNCTIONS,
    NAMES,
    NOISY_NAMES,
    WIDE,
    WIDE_NAMES,
    Classic,
)
from amortes.bench.problems.synthetic import sobol_points
from amortes.random import generator

pytest.importorskip("botorch")


def test_values_are_those_of_the_textbook_on_a_box() -> None:
    problem = Classic("classic-rosenbrock4")
    X = sobol_points(4, 16)
    low, high = problem._box
    z = low + (high - low) * X
    first, second = z[:, :-1], z[:, 1:]
    expected = (100 * (second - first**2).square() + (first - 1).square()).sum(1)
    torch.testing.assert_close(problem.value(X), -expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_box_is_inside_the_domain_and_holds_a_maximiser(name: str) -> None:
    problem = Classic(name)
    low, high = problem._function.bounds
    shares = (problem._box[1] - problem._box[0]) / (high - low)
    assert bool((problem._box[0] >= low - 1e-9).all() & (problem._box[1] <= high + 1e-9).all())
    assert bool(((shares >= 0.5) & (shares <= 0.8)).all())
    assert len(set(shares.tolist())) == problem.d
    function = FUNCTIONS[name.removeprefix("classic-")]
    optimum = torch.as_tensor(function.optimum, dtype=torch.float64).expand(problem.d)
    unit = ((optimum - problem._box[0]) / (problem._box[1] - problem._box[0])).clamp(0.0, 1.0)

    def loss(u: np.ndarray) -> float:
        return -float(problem.value(torch.from_numpy(u)[None]))

    found: Any = scipy.optimize.minimize(
        loss, unit.numpy(), bounds=[(0.0, 1.0)] * problem.d, method="L-BFGS-B"
    )
    reached = max(-float(found.fun), -loss(unit.numpy()))
    values = problem.value(sobol_points(problem.d, 2048))
    assert reached == pytest.approx(problem.best, abs=1e-5 * float(values.max() - values.min()))
    assert values.max() <= problem.best + 1e-6
    assert problem.noise_sd == 0.0


def test_maxima_are_not_in_the_centre() -> None:
    """Ackley, Levy, Rastrigin and others are best in the centre of their usual domains."""
    places = []
    for name in ("classic-ackley6", "classic-rastrigin3", "classic-griewank4", "classic-powell4"):
        low, high = Classic(name)._box
        places.append(-low / (high - low))
    distance = (torch.cat(places) - 0.5).abs()
    assert distance.mean() > 0.1


@pytest.mark.parametrize("name", WIDE_NAMES)
def test_wide_functions_have_a_maximum_at_the_maximiser(name: str) -> None:
    problem, function = Classic(name), WIDE[name.removeprefix("wide-")]
    low, high = problem._box
    optimum = torch.as_tensor(function.optimum, dtype=torch.float64).expand(len(low))
    X = torch.rand(64, problem.d, dtype=torch.float64, generator=generator(0))
    X[:, problem._used] = (optimum - low) / (high - low)
    assert float(problem.value(X).max()) == pytest.approx(problem.best, abs=2e-4)
    assert problem.value(X).std() < 1e-9  # whatever the coordinates that it does not depend on
    assert problem.d - function.unused == len(low)
    assert (problem.value(sobol_points(problem.d, 512)) < problem.best).all()


def test_noise_is_a_tenth_of_the_range() -> None:
    noisy, plain = Classic("classic-branin-noisy"), Classic("classic-branin")
    X = sobol_points(2, 4096)
    assert torch.equal(noisy.value(X), plain.value(X))
    spread = plain.best - float(plain.value(X).min())
    assert math.isclose(noisy.noise_sd, 0.1 * spread, rel_tol=1e-9)


def test_names() -> None:
    assert len(set(NAMES + NOISY_NAMES)) == 2 * len(FUNCTIONS)
    assert len(set(NAMES + WIDE_NAMES)) == len(FUNCTIONS) + len(WIDE)
