import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from amortes.bench.maximisers import first_order
from amortes.bench.maximisers.comparison import draw_paths
from amortes.bench.maximisers.ensemble import (
    DEFAULT_ENSEMBLE,
    CandidateRun,
    Ensemble,
    greedy,
    maximise_by_ensemble,
    regret,
    run_candidate,
    select,
    values_at,
)
from amortes.bench.maximisers.first_order import FirstOrderConfig, random_candidates
from amortes.errors import ConfigError, FileError
from amortes.prior.gp import named_prior
from amortes.random import generator

QUICK = FirstOrderConfig(
    adam=True,
    init_lr=0.1,
    resample_init=False,
    num_samples=50,
    n_iterations_max=10,
    num_repeats=10,
    max_decays=5,
    tol=1e-3,
    decay_factor=0.5,
    clamp=True,
    patience=5,
)
PATHS = draw_paths(named_prior("paper"), 2, 30, seed=0)


def runs_with(values: np.ndarray, seconds: list[float]) -> list[CandidateRun]:
    """One run per column of `values`, each with its own configuration."""
    return [
        CandidateRun(config=config, values=tuple(column), seconds=(each,) * len(column))
        for config, column, each in zip(
            random_candidates(values.shape[1], seed=1), values.T.tolist(), seconds, strict=True
        )
    ]


def naive_greedy(values: np.ndarray, target: float) -> list[int]:
    members: list[int] = []
    while not members or regret(values, members) > target:
        remaining = [j for j in range(values.shape[1]) if j not in members]
        members.append(min(remaining, key=lambda j: regret(values, [*members, j])))
    return members


def test_regret_by_hand() -> None:
    values = np.array([[1.0, 2.0, 4.0], [3.0, 0.0, 1.0]])
    assert regret(values, [0]) == 1.5
    assert regret(values, [1, 2]) == 1.0
    assert regret(values, [0, 2]) == 0.0


@pytest.mark.parametrize("target", [0.0, 1e-6, 0.05, 10.0])
def test_greedy_agrees_with_the_definition(target: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        # Sparse shortfalls of very different sizes, as optimisers have them.
        gaps = 10.0 ** rng.uniform(-8, 0, (30, 12)) * (rng.random((30, 12)) < 0.4)
        values = rng.standard_normal((30, 1)) - gaps
        members = greedy(values, target)
        assert members == naive_greedy(values, target)
        assert regret(values, members) <= target


def test_each_fold_is_judged_on_paths_it_has_not_seen() -> None:
    # Candidate i alone solves path i. Leaving path i out loses that candidate: regret 1.
    ensemble, about = select(runs_with(np.eye(5), [1.0] * 5), 5, target=0.0, folds=5)
    assert about["fold_sizes"] == (4,) * 5
    assert about["held_out_regrets"] == (1.0,) * 5
    assert about["held_out_regret"] == 1.0
    assert len(ensemble.members) == 5  # the folds' ensembles merged
    assert about["regret"] == 0.0
    assert about["ms_per_path"] == 5000.0


def test_selection_stops_at_the_target() -> None:
    values = np.column_stack([np.zeros(20), np.full(20, -1e-3), np.linspace(0, 1e-4, 20)])
    runs = runs_with(values, [1.0] * 3)
    assert len(select(runs, 20, target=1e-3)[0].members) == 1
    exact, _ = select(runs, 20, target=0.0)
    assert exact.members == (runs[2].config,)  # at least as good on every path


def test_slow_and_unfinished_candidates_are_dropped_and_do_not_set_the_standard() -> None:
    good, slow, abandoned = runs_with(np.array([[0.0, 1.0, 2.0]] * 10), [1.0, 10.1, 5.0])
    abandoned = dataclasses.replace(abandoned, values=(2.0,) * 4, seconds=(5.0,) * 4)
    ensemble, about = select([good, slow, abandoned], 10, max_seconds=10.0)
    assert ensemble.members == (good.config,)
    assert about["eligible"] == 1
    assert about["held_out_regret"] == 0.0
    assert select([good, slow], 10, max_seconds=11.0)[0].members == (slow.config,)
    with pytest.raises(ConfigError, match="none of 2 candidates"):
        select([slow, abandoned], 10)


def test_the_faster_of_two_equals_is_taken() -> None:
    runs = runs_with(np.zeros((10, 3)), [3.0, 1.0, 2.0])
    assert select(runs, 10)[0].members == (runs[1].config,)


def test_selection_depends_on_its_seed_only() -> None:
    values = np.random.default_rng(0).standard_normal((23, 9))
    runs = runs_with(values, [1.0] * 9)
    assert select(runs, 23, seed=1) == select(runs, 23, seed=1)
    one, two = (select(runs, 23, seed=seed)[1]["held_out_regrets"] for seed in (1, 2))
    assert one != two


def test_invalid_selections_are_explained() -> None:
    runs = runs_with(np.zeros((4, 1)), [1.0])
    with pytest.raises(ConfigError, match="folds"):
        select(runs, 4)
    with pytest.raises(ConfigError, match="target"):
        select(runs, 4, folds=2, target=-1.0)


def test_run_records_float64_values_and_time_of_every_path() -> None:
    run = run_candidate(PATHS, QUICK, seed=3)
    assert len(run.values) == len(run.seconds) == 30
    assert all(seconds > 0 for seconds in run.seconds)
    group = first_order.batch_size(PATHS, QUICK)
    assert group < 30
    x = first_order.maximise_by_gradient(PATHS[:group], QUICK, generator(3, 0)).x
    expected = PATHS[:group].to(torch.float64)(x[:, None].double()).squeeze(1)
    np.testing.assert_allclose(run.values[:group], expected, rtol=0, atol=1e-14)
    again = run_candidate(PATHS, QUICK, seed=3)
    assert again.values == run.values
    assert run_candidate(PATHS, QUICK, seed=4).values != run.values


def test_a_candidate_over_the_cap_is_abandoned() -> None:
    run = run_candidate(PATHS, QUICK, seed=3, max_seconds=1e-9)
    assert len(run.values) == len(run.seconds) == first_order.batch_size(PATHS, QUICK)
    assert run.mean_seconds > 1e-9


def test_finished_candidates_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_candidate(PATHS, QUICK, seed=3, work=tmp_path)
    run_candidate(PATHS, dataclasses.replace(QUICK, tol=0.1), seed=3, work=tmp_path)
    run_candidate(PATHS, QUICK, seed=4, work=tmp_path)
    run_candidate(PATHS[:5], QUICK, seed=3, work=tmp_path)
    run_candidate(PATHS, QUICK, seed=3, max_seconds=9.0, work=tmp_path)
    assert len(list(tmp_path.iterdir())) == 5

    def fail(*args: object) -> None:
        raise AssertionError("was run again")

    monkeypatch.setattr(first_order, "maximise_by_gradient", fail)
    assert run_candidate(PATHS, QUICK, seed=3, work=tmp_path) == first
    with pytest.raises(AssertionError, match="was run again"):
        run_candidate(PATHS, QUICK, seed=5, work=tmp_path)


def test_an_ensemble_is_the_best_of_its_members() -> None:
    members = (
        dataclasses.replace(QUICK, num_samples=5),
        dataclasses.replace(QUICK, num_samples=5, adam=False, init_lr=0.01),
        dataclasses.replace(QUICK, num_samples=5, clamp=False),
    )
    together = maximise_by_ensemble(PATHS, Ensemble(members=members), seed=2)
    values = values_at(PATHS, together.x)
    alone = torch.stack(
        [
            values_at(PATHS, first_order.maximise_by_gradient(PATHS, member, generator(2, i)).x)
            for i, member in enumerate(members)
        ]
    )
    assert len(set(alone.argmax(0).tolist())) == 3  # each member wins somewhere
    torch.testing.assert_close(values, alone.amax(0), rtol=0, atol=1e-14)
    torch.testing.assert_close(together.f, values.float())


def test_file_round_trip(tmp_path: Path) -> None:
    target = tmp_path / "new" / "ensemble.json"
    DEFAULT_ENSEMBLE.save(target, built={"dim": 6})
    assert Ensemble.load(target) == DEFAULT_ENSEMBLE
    assert json.loads(target.read_text())["built"] == {"dim": 6}


@pytest.mark.parametrize(
    "text",
    ["", "[1]", "{}", '{"members": []}', '{"members": [{"adam": true}]}', '{"members": [3]}'],
)
def test_a_file_that_is_no_ensemble_is_named(text: str, tmp_path: Path) -> None:
    source = tmp_path / "ensemble.json"
    source.write_text(text)
    with pytest.raises(FileError, match=r"ensemble\.json"):
        Ensemble.load(source)
