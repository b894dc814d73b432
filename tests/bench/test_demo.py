import itertools

import pytest
import torch

from amortes.bench.demo import BEST, METHODS, RANDOM, D, draw_regrets, hartmann6, race
from amortes.nets.kernel import KernelNetwork
from amortes.prior.gp import named_prior
from tests.optimiser.conftest import untrained


@pytest.fixture(scope="module")
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))


def test_hartmann_is_botorchs() -> None:
    functions = pytest.importorskip("botorch.test_functions")
    theirs = functions.Hartmann(6, negate=True, dtype=torch.float64)
    X = torch.rand(50, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.allclose(hartmann6(X), theirs(X))
    optimum = theirs.optimizers.double()
    assert float(hartmann6(optimum)) == pytest.approx(BEST, abs=1e-4)
    assert theirs.optimal_value == pytest.approx(BEST)


def test_a_race(network: KernelNetwork) -> None:
    steps = list(race(D + 3, seed=1, network=network))
    assert len(steps) == (D + 3) * len(METHODS)
    runners = steps[-1]
    assert [runner.method for runner in runners] == list(METHODS)
    trials = [runner.optimizer.trials for runner in runners]
    for one, other in itertools.combinations(trials, 2):
        # The same initial points with the same noise, then each goes its way.
        assert one[: D + 1] == other[: D + 1]
        assert one[D + 1].config != other[D + 1].config
    for runner in runners:
        assert runner.evaluations == D + 3
        assert len(runner.regrets) == 3
        assert all(0 < regret < BEST for regret in runner.regrets)
        assert runner.seconds > 0
    figure = draw_regrets([runners, runners])
    (ax,) = figure.axes
    assert len(ax.lines) == 3 * len(METHODS)
    _, labels = ax.get_legend_handles_labels()
    assert labels == ["JES", "LogEI", RANDOM]
