import pytest
import torch

from amortes.bench.problems.engineering import DESIGNS, Engineering
from amortes.bench.problems.synthetic import sobol_points

pytest.importorskip("botorch")


@pytest.mark.parametrize("name", list(DESIGNS))
def test_no_point_is_better_than_the_best_known(name: str) -> None:
    problem = Engineering(name)
    X = sobol_points(problem.d, 8192)
    values = problem.value(X)
    assert values.isfinite().all()
    assert values.max() <= problem.best
    # And the best is not a number from nowhere: local search from a good point comes near.
    for x in X[values.topk(3).indices]:
        width = 0.2
        for seed in range(40):
            rng = torch.Generator().manual_seed(seed)
            step = torch.randn(256, problem.d, dtype=torch.float64, generator=rng)
            near = (x + width * step).clamp(0.0, 1.0)
            found = problem.value(near)
            if found.max() > problem.value(x[None]):
                x = near[found.argmax()]
            else:
                width *= 0.7
        if problem.best - float(problem.value(x[None])) < 0.02 * float(values.std()):
            return
    raise AssertionError(f"nothing near {problem.best}")


def test_a_single_objective_without_violations_is_the_standardised_objective() -> None:
    problem = Engineering("design-speed-reducer")
    X = sobol_points(7, 4096)
    objective, slack = problem._raw(X)
    feasible = (slack >= 0).all(1)
    assert 0 < int(feasible.sum()) < len(X)
    spread = objective.quantile(0.75) - objective.quantile(0.25)
    expected = -(objective[:, 0] - objective.median()) / spread
    values = problem.value(X)
    torch.testing.assert_close(values[feasible], expected[feasible], atol=1e-2, rtol=0)
    assert bool((values[~feasible] < expected[~feasible]).all())


def test_several_objectives_count_by_the_worst() -> None:
    problem = Engineering("design-vehicle-safety")
    X = sobol_points(5, 256)
    objectives, slack = problem._raw(X)
    assert (objectives.shape, slack.shape) == ((256, 3), (256, 0))
    z = (objectives - problem._centres) / problem._scales
    worst = z.amax(1)
    values = problem.value(X)
    assert bool((values <= -worst).all())
    # A smooth maximum of three exceeds the maximum by at most log(3) / 3.
    assert bool((values >= -worst - 0.3663).all())
