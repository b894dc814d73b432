import copy
import math
import pickle
import statistics
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import optuna
import pytest
import torch
from optuna import Study, Trial
from optuna.distributions import (
    BaseDistribution,
    FloatDistribution,
)
from optuna.trial import TrialState

from amortes.errors import ConfigError
from amortes.integrations.optuna import AmortesSampler
from amortes.optimiser import AmortesWarning
from tests.integrations.optuna.conftest import Make

SQUARE: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}


def hill(trial: Trial) -> float:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    return (x - 0.3) ** 2 + (y - 0.6) ** 2


def mixed(trial: Trial) -> float:
    value = trial.suggest_float("lr", 1e-4, 1, log=True) + trial.suggest_float("p", 0, 1, step=0.1)
    value += trial.suggest_int("n", 1, 9) + trial.suggest_int("w", 8, 512, log=True) / 512
    return value + {"a": 0.0, "b": 1.0, "c": 2.0}[trial.suggest_categorical("kind", "abc")]


def conditional(trial: Trial) -> float:
    if trial.suggest_categorical("kind", ["far", "near"]) == "far":
        return 2.0 + trial.suggest_float("a", 0, 1)
    b, c = trial.suggest_float("b", 0, 1), trial.suggest_float("c", 0, 1)
    return (b - 0.7) ** 2 + (c - 0.2) ** 2


def run(sampler: AmortesSampler, objective: Callable[[Trial], float], n: int) -> Study:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=n)
    return study


def params(study: Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials]


@pytest.mark.parametrize("objective", [hill, mixed, conditional])
def test_the_same_seed_gives_the_same_study(
    make: Make, objective: Callable[[Trial], float]
) -> None:
    first, again, other = (run(make(seed=seed), objective, 9) for seed in (3, 3, 4))
    assert params(first) == params(again)
    assert params(first) != params(other)


def test_without_a_seed_studies_differ(make: Make) -> None:
    assert params(run(make(seed=None), hill, 2)) != params(run(make(seed=None), hill, 2))


def test_a_study_goes_on_as_if_it_had_not_stopped(make: Make) -> None:
    whole = run(make(), hill, 9)
    first = run(make(), hill, 5)
    first.sampler = make()
    first.optimize(hill, n_trials=4)
    assert params(whole) == params(first)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("acquisition", ["jes", "logei"])
def test_it_finds_the_top(
    make: Make, direction: Literal["minimize", "maximize"], acquisition: str
) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    study = optuna.create_study(sampler=make(acquisition=acquisition), direction=direction)
    study.optimize(lambda trial: sign * hill(trial), n_trials=20)
    assert abs(study.best_value) < 2e-3  # of random points, one in 160


def test_it_learns_within_branches(make: Make) -> None:
    study = run(make(), conditional, 35)
    assert study.best_value < 5e-3
    kinds = [trial.params["kind"] for trial in study.trials]
    assert kinds[15:].count("near") > 15
    # b and c of the other branch never mix with a.
    assert all(("a" in p) == (p["kind"] == "far") for p in params(study))


def test_violated_constraints_are_avoided(make: Make) -> None:
    def constrained(trial: Trial) -> float:
        value = hill(trial)
        trial.set_constraint("x is at least a half", 0.5 - trial.params["x"])
        return value

    study = run(make(), constrained, 25)
    feasible = [trial.params["x"] >= 0.5 for trial in study.trials]
    assert sum(feasible[13:]) >= 9
    assert study.best_value < 0.045  # 0.04 is possible


def test_choices_may_be_lists(make: Make) -> None:
    def layers(trial: Trial) -> float:
        choices: list[Any] = [[64], [64, 64], [128]]
        widths: list[int] = trial.suggest_categorical("layers", choices)
        return sum(widths) + trial.suggest_float("x", 0, 1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna: such choices cannot be stored
        study = run(make(), layers, 9)
    assert study.best_params["layers"] == [64]


def test_integers_of_numpy(make: Make) -> None:
    assert params(run(make(seed=np.int64(3)), hill, 4)) == params(run(make(seed=3), hill, 4))


def test_parameters_of_a_branch_are_chosen_together(make: Make) -> None:
    # Not so many that the optimum is found and the sampler looks elsewhere.
    study = run(make(), conditional, 12)
    study.enqueue_trial({"kind": "near"})
    trial = study.ask()
    trial.suggest_categorical("kind", ["far", "near"])
    b = trial.suggest_float("b", 0, 1)
    # c is settled now: not drawn, nor chosen anew without regard to b.
    frozen = study.trials[trial.number]
    study.add_trial(optuna.create_trial(value=0.0, params={}))
    c = study.sampler.sample_independent(study, frozen, "c", FloatDistribution(0, 1))
    assert c == trial.suggest_float("c", 0, 1)
    assert (b - 0.7) ** 2 + (c - 0.2) ** 2 < 0.2


def test_branches_of_a_continuous_parameter(make: Make) -> None:
    def objective(trial: Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        return x if x > 0.5 else (trial.suggest_float("y", 0, 1) - 0.7) ** 2

    study = run(make(), objective, 20)
    frozen = study.trials[0]
    assert set(study.sampler.infer_relative_search_space(study, frozen)) == {"x"}
    assert study.best_value < 1e-2


def test_too_many_branches_for_the_network(make: Make) -> None:
    def objective(trial: Trial) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        return sum(trial.suggest_float(f"{kind}{i}", 0, 1) for i in range(9))

    study = run(make(), objective, 6)
    assert {trial.params["kind"] for trial in study.trials} == {"a", "b"}
    frozen = study.trials[0]
    assert set(study.sampler.infer_relative_search_space(study, frozen)) == {"kind"}


def test_given_values_are_taken_into_account(make: Make) -> None:
    # The best y depends on x.
    def ridge(trial: Trial) -> float:
        return (trial.suggest_float("x", 0, 1) - trial.suggest_float("y", 0, 1)) ** 2

    apart = []
    for seed in range(5):
        study = run(make(seed=seed), ridge, 14)
        for x in (0.15, 0.85):
            study.enqueue_trial({"x": x})
            study.optimize(ridge, n_trials=1)
            apart.append(abs(study.trials[-1].params["y"] - x))
    assert statistics.median(apart) < 0.2  # at random 0.35


def test_running_trials_are_pending_points(make: Make) -> None:
    study = run(make(), hill, 8)
    asked = [study.ask(SQUARE).params for _ in range(4)]
    distances = [math.dist(a.values(), b.values()) for i, a in enumerate(asked) for b in asked[:i]]
    assert min(distances) > 1e-3
    # Another process, which knows no more than the storage, chooses the same.
    number = study.ask().number
    trial = study.trials[number]
    chosen = [sampler.sample_relative(study, trial, SQUARE) for sampler in (study.sampler, make())]
    assert chosen[0] == chosen[1]


def test_trials_that_others_are_choosing_for_are_imagined(make: Make) -> None:
    study = run(make(), hill, 8)
    alone = run(make(), hill, 8)
    expected = [alone.ask(SQUARE).params for _ in range(3)]
    # Three workers that see the same study, and none of the others' choices.
    trials = [study.ask() for _ in range(3)]
    for trial, point in zip(trials, expected, strict=True):
        frozen = study.trials[trial.number]
        assert make().sample_relative(study, frozen, SQUARE) == pytest.approx(point)


def test_first_trials_of_workers_with_one_seed_differ(make: Make) -> None:
    study = optuna.create_study(sampler=make())
    first, second = study.ask(), study.ask()
    study.sampler = make()
    assert first.suggest_float("x", 0, 1) != second.suggest_float("x", 0, 1)
    assert second.suggest_float("y", 0, 1) != second.params["x"]


def test_failed_and_pruned_regions_are_avoided(make: Make) -> None:
    def objective(trial: Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if x > 0.7:
            raise optuna.TrialPruned
        if x > 0.5:
            raise RuntimeError
        return -x

    study = optuna.create_study(sampler=make())
    study.optimize(objective, n_trials=20, catch=RuntimeError)
    late = [trial.params["x"] for trial in study.trials[10:]]
    assert sum(x > 0.55 for x in late) <= 6  # where the objective would be best, if it worked
    assert study.best_value < -0.45


def test_pruned_trials_do_not_drive_others_away(make: Make) -> None:
    late = []

    def objective(trial: Trial) -> float:
        value = hill(trial)
        late.append(value)
        for step in range(1, 6):
            trial.report(value + 1 / step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study = optuna.create_study(sampler=make(), pruner=optuna.pruners.PercentilePruner(10.0))
    study.optimize(objective, n_trials=22)
    # Close to the optimum many are pruned.
    assert sum(trial.state == TrialState.PRUNED for trial in study.trials) >= 5
    # A random config has a chance of 3 %.
    assert sum(value < 1e-2 for value in late[14:]) >= 3


def test_values_that_are_no_numbers_do_no_harm(make: Make) -> None:
    bad = iter([math.inf, -math.inf, math.nan, 1e300, 1.0, 1.0, 1.0])
    study = run(make(), lambda trial: hill(trial) + next(bad), 7)
    states = [trial.state for trial in study.trials]
    assert states.count(TrialState.COMPLETE) == 6
    study.optimize(hill, n_trials=3)


def test_equal_values_do_no_harm(make: Make) -> None:
    study = run(make(), lambda trial: 0.0 * hill(trial), 8)
    assert len({tuple(p.values()) for p in params(study)}) == 8


def test_a_discrete_space_is_exhausted_before_repeats(make: Make) -> None:
    def objective(trial: Trial) -> float:
        return trial.suggest_int("n", 1, 3) + trial.suggest_float("p", 0, 1, step=0.5)

    study = run(make(), objective, 9)
    assert len({tuple(p.values()) for p in params(study)}) == 9
    with pytest.warns(AmortesWarning, match="every config") as said:
        study.optimize(objective, n_trials=3)
    assert len(said) == 1


def test_constants_and_odd_values(make: Make) -> None:
    def objective(trial: Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        trial.suggest_float("one", 1, 1)
        trial.suggest_categorical("only", ["a"])
        big = trial.suggest_int("big", 0, 2**60)
        kind = trial.suggest_categorical("kind", [None, True, 1, 1.5, "1"])
        return x + big / 2**60 + (kind is None)

    study = run(make(), objective, 8)
    assert all(p["one"] == 1 and p["only"] == "a" for p in params(study))


def test_values_out_of_range_are_left_out(make: Make) -> None:
    study = run(make(), hill, 5)
    study.enqueue_trial({"x": 5.0})
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(hill, n_trials=1)
    study.optimize(hill, n_trials=2)
    assert 0 <= study.trials[-1].params["x"] <= 1


def test_ranges_that_change(make: Make) -> None:
    study = run(make(), hill, 6)

    def wider(trial: Trial) -> float:
        return (trial.suggest_float("x", -1, 2) - 1.7) ** 2 + trial.suggest_float("y", 0, 1)

    study.optimize(wider, n_trials=20)
    # Once the optimum is known, single suggestions explore.
    assert min(abs(trial.params["x"] - 1.7) for trial in study.trials[-5:]) < 0.3


def test_any_sampler_may_take_the_rest(make: Make) -> None:
    taken = []

    class Middle(optuna.samplers.RandomSampler):
        def sample_independent(self, *args: Any) -> Any:
            taken.append(args[2])
            return super().sample_independent(*args)

    run(make(independent_sampler=Middle(seed=0)), conditional, 5)
    # The first trial of all, and of each branch.
    assert taken[0] == "kind"
    assert sorted(taken[1:]) == ["a", "b", "c"]


def test_pruners_that_split_the_study(make: Make) -> None:
    def objective(trial: Trial) -> float:
        value = hill(trial)
        for step in range(9):
            trial.report(value + 1 / (1 + step), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    study = optuna.create_study(sampler=make(), pruner=pruner)
    study.optimize(objective, n_trials=15)
    assert {TrialState.COMPLETE, TrialState.PRUNED} == {trial.state for trial in study.trials}


def test_threads(make: Make) -> None:
    study = optuna.create_study(sampler=make())
    barrier = threading.Barrier(2, timeout=60)

    def objective(trial: Trial) -> float:
        value = hill(trial)
        barrier.wait()  # so that the other's trial is always under way
        return value

    study.optimize(objective, n_trials=12, n_jobs=2)
    points = [tuple(p.values()) for p in params(study)]
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    assert min(math.dist(a, b) for i, a in enumerate(points) for b in points[:i]) > 1e-6


def test_reseeding_changes_what_comes(make: Make) -> None:
    study = run(make(), hill, 1)
    number = study.ask().number
    trial = study.trials[number]
    before = study.sampler.sample_relative(study, trial, SQUARE)
    study.sampler.reseed_rng()
    assert study.sampler.sample_relative(study, trial, SQUARE) != before


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_choose_alike(make: Make, copier: Callable[[Any], Any]) -> None:
    study, other = run(make(), hill, 6), run(make(), hill, 6)
    other.sampler = copier(other.sampler)
    assert study.ask(SQUARE).params == other.ask(SQUARE).params


def test_one_sampler_for_two_studies(make: Make) -> None:
    sampler = make()
    alone = run(make(), hill, 6)
    study = optuna.create_study(sampler=sampler)
    for _ in range(6):
        run(sampler, mixed, 1)
        study.optimize(hill, n_trials=1)
    assert params(study) == params(alone)


@pytest.fixture
def _default_device_elsewhere() -> Iterator[None]:
    torch.set_default_device("meta")
    yield
    torch.set_default_device("cpu")


@pytest.mark.usefixtures("_default_device_elsewhere")
def test_the_default_device_does_not_matter(make: Make) -> None:
    elsewhere = params(run(make(), hill, 5))
    torch.set_default_device("cpu")
    assert elsewhere == params(run(make(), hill, 5))


def test_several_objectives_are_refused(make: Make) -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=make())
    with pytest.raises(ConfigError, match=r"one objective, not 2.*NSGAII"):
        study.optimize(lambda trial: (hill(trial), 0.0), n_trials=1)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"acquisition": "ucb"}, "acquisition: must be one of auto, pes, mes, jes, ei, logei"),
        ({"seed": -1}, "seed: must be an int of at least 0"),
        ({"seed": 1.5}, "seed: must be an int"),
        ({"n_startup_trials": 0}, "n_startup_trials: must be an int of at least 1"),
        ({"network": "kernel"}, "network: 'kernel' is neither a file"),
        ({"independent_sampler": 3}, "independent_sampler: must be an Optuna sampler"),
    ],
)
def test_bad_arguments(argument: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AmortesSampler(**argument)


def test_startup_trials(make: Make) -> None:
    def hardly(sampler: AmortesSampler) -> list[float]:
        study = run(sampler, lambda trial: trial.suggest_float("x", 0, 1), 8)
        return [p["x"] for p in params(study)]

    design, modelled = hardly(make(n_startup_trials=8)), hardly(make(n_startup_trials=2))
    assert modelled[:2] == design[:2]
    assert set(modelled[2:]).isdisjoint(design)
    assert min(modelled) < 1e-3 < 0.02 < min(design)
