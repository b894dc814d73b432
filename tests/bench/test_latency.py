import types
from typing import Any

import pytest
import torch
from torch import Tensor

from amortes.acquisition import Fitted
from amortes.acquisition.fitted import fit_warped
from amortes.bench import latency
from amortes.bench.latency import (
    COMPILED,
    FULLY_BAYESIAN,
    GIBBON,
    LOGEI,
    MCMC_REPEATS,
    OPTUNA,
    OURS,
    SCRATCH,
    Datasets,
    Seconds,
    compare,
    draw,
    measure_start,
    optunas_gp,
    ours,
    rows,
    run_on,
)
from amortes.bench.protocol import Step, initial_points
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser import suggest
from amortes.pretrained import names
from amortes.prior.gp import named_prior
from tests.bench.methods.conduct import Quadratic
from tests.optimiser.conftest import untrained


@pytest.fixture(scope="module")
def network() -> KernelNetwork:
    return untrained(named_prior("robust"))


def datasets(network: KernelNetwork, count: int) -> Datasets:
    return lambda n: draw(network, 1, n, count, seed=0)


def test_a_row_for_each_method_and_size(network: KernelNetwork) -> None:
    pytest.importorskip("botorch")
    found = list(
        compare(network, datasets(network, 2), d=1, points=(4, 6), seed=0, fully_bayesian=False)
    )
    assert [(row["n"], row["method"]) for row in found] == [
        (n, method) for n in (4, 6) for method in (OURS, SCRATCH, LOGEI, GIBBON, OPTUNA)
    ]
    for row in found:
        assert row["fit_ms"] > 0 or row["method"] == OPTUNA
        assert row["ms"] == pytest.approx(row["fit_ms"] + row["search_ms"])
    assert found[0]["times_ours"] == 1.0


def test_the_fully_bayesian_gp_is_timed_as_botorch_has_it_and_compiled(
    network: KernelNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    fully_bayesian = pytest.importorskip("amortes.bench.methods.fully_bayesian")
    paper_gp = pytest.importorskip("amortes.bench.methods.paper_gp")
    made: dict[object, list[int]] = {}

    class Timed(fully_bayesian.FullyBayesian):  # type: ignore[misc, name-defined]
        def step(self, X: Tensor, y: Tensor) -> Step:
            assert (self.acquisition, self.path_restarts) == ("jes", 20)
            assert len(X) == len(y)
            made.setdefault(self.sampler, []).append(len(X))
            return Step(
                x=X[0],
                recommended=X[0],
                fit_seconds=20.0 if self.sampler is paper_gp.fit_by_botorch else 8.0,
                search_seconds=1.0,
                recommend_seconds=0.0,
            )

    monkeypatch.setattr(fully_bayesian, "FullyBayesian", Timed)
    some = datasets(network, MCMC_REPEATS + 2)
    found = list(compare(network, some, d=1, points=(6,), seed=0, fully_bayesian=True))
    assert [row["method"] for row in found][5:] == [FULLY_BAYESIAN, COMPILED]
    assert [row["fit_ms"] for row in found[5:]] == [20e3, 8e3]
    # The first is not timed. Sizes that BoTorch has not met, as in an optimisation.
    assert made == {paper_gp.fit_by_botorch: [6, 5, 4, 3], paper_gp.fit: [6, 6, 6, 6]}


def test_medians_and_ratios() -> None:
    slow = [Seconds(0.1, 0.2), Seconds(0.1, 0.5), Seconds(9.0, 9.0)]
    ours_row, theirs = rows(20, {OURS: [Seconds(0.01, 0.09)], LOGEI: slow})
    assert (ours_row["ms"], ours_row["times_ours"]) == pytest.approx((100.0, 1.0))
    assert (theirs["ms"], theirs["fit_ms"], theirs["search_ms"]) == pytest.approx(
        (600.0, 100.0, 500.0)
    )
    assert theirs["times_ours"] == pytest.approx(6.0)


def test_datasets_differ_and_are_repeatable(network: KernelNetwork) -> None:
    (X, y), (other, _) = draw(network, 2, 5, 2, seed=1)
    (X_again, y_again), _ = draw(network, 2, 5, 2, seed=1)
    assert X.shape == (5, 2)
    assert torch.equal(X, X_again)
    assert torch.equal(y, y_again)
    assert not torch.equal(X, other)


def test_datasets_of_real_runs(network: KernelNetwork) -> None:
    problem = Quadratic(2)
    some = run_on(network, problem, 7, 2, seed=0)
    (X, y), (other, _) = some(7)
    assert X.shape == (7, 2)
    assert not torch.equal(X, other)
    assert torch.equal(y, problem.value(X))
    assert torch.equal(X[:2], initial_points(problem, 0))
    (short, values), _ = some(4)
    assert torch.equal(short, X[:4])
    assert torch.equal(values, y[:4])
    assert y[2:].max() > y[:2].max()  # it optimises


@pytest.mark.parametrize("known", [1, None])
def test_our_time_is_that_of_an_ask(
    network: KernelNetwork, monkeypatch: pytest.MonkeyPatch, known: int | None
) -> None:
    """A clock tells how many fits there were so far, and of how many results the last one was."""
    fits: list[int] = []

    def fit(network: KernelNetwork, X: Tensor, y: Tensor, **rest: Any) -> Fitted:
        fits.append(len(y))
        return fit_warped(network, X, y, **rest)

    monkeypatch.setattr(suggest, "fit_warped", fit)
    clock = types.SimpleNamespace(perf_counter=lambda: float(len(fits)))
    monkeypatch.setattr(latency, "time", clock)
    X, y = next(draw(network, 2, 22, 1, seed=1))
    # The fit to the first 20 results is made once, and before, if these were known.
    assert ours(network, known)(X, y, 0) == Seconds(1.0 if known else 2.0, 0.0)
    assert fits == ([20, 21, 22] if known else [20, 22])


def test_optunas_sampler_has_been_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    optuna = pytest.importorskip("optuna")
    asked: list[int] = []
    ask = optuna.Study.ask

    def count(study: Any, space: Any) -> Any:
        states = [trial.state for trial in study.get_trials(deepcopy=False)]
        asked.append(states.count(optuna.trial.TrialState.COMPLETE))
        return ask(study, space)

    monkeypatch.setattr(optuna.Study, "ask", count)
    X = torch.rand(12, 2, dtype=torch.float64)
    assert optunas_gp(X, X.sum(-1), 0).search > 0
    assert asked == [11, 12]


def test_a_fresh_process_starts() -> None:
    if not names():
        pytest.skip("no weights in the package")
    start = measure_start(2, 5)
    assert 0 < start.import_seconds < 60
    assert 50 < start.peak_mib < 4096
