"""A sampler for Optuna.

All parameters are chosen jointly, by the network fitted to all results; which of them depend on
others is learned (`space`). A parameter that comes up besides (in a branch not seen before, or
with a range that has changed) is chosen by the network fitted to the trials that have it too, given
what the trial already has. Where there is no result yet, values are drawn uniformly.

Everything is a pure function of the seed, the number of the trial and the study so far. Workers
with one storage therefore need no other contact: the trials of others are pending points, and
trial numbers, which the storage makes unique, keep random choices apart. A trial that another
worker is just choosing parameters for is imagined to get those that the network would choose.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from amortes.errors import ConfigError, require_int
from amortes.integrations.optuna.history import Plan, known, record, undecided
from amortes.integrations.optuna.space import Distributions, Structure, Translation, constant
from amortes.nets.base import GAINS
from amortes.optimiser.design import sample
from amortes.optimiser.suggest import Suggester, check_acquisition
from amortes.pretrained import AnyNetwork, as_network
from amortes.random import generator, hashed
from amortes.threads import lock_of, on_cpu

MOST_IMAGINED = 8  # trials imagined at once: each takes as long as a suggestion


class AmortesSampler(BaseSampler):
    """A sampler for Optuna that chooses parameters with a fully Bayesian Gaussian process.

        study = optuna.create_study(sampler=AmortesSampler(seed=0))
        study.optimize(objective, n_trials=50)

    It supports one objective, minimised or maximised, and any search space: linear, logarithmic,
    stepped, categorical and conditional parameters. It works with `n_jobs` and with several
    processes that share a storage. It avoids regions in which trials fail or return values that are
    not finite, and does not suggest pruned configs again. It learns constraints that the objective
    sets (`trial.set_constraint`, since Optuna 5).

    acquisition: the acquisition function: auto (logei, and jes from 20 results on if they are
        noisy), logei or ei (expected improvement), or pes, mes or jes (information about the
        optimum).
    seed: seed of everything random; by default a random one.
    n_startup_trials: number of trials that are spread over the space before the model chooses. By
        default one more than the number of coordinates, at most 10.
    network: the network to use: its name, a weights file, or the network itself. By default the
        first one listed by `amortes info`.
    independent_sampler: chooses parameters that cannot be chosen together with the others: those of
        the first trial, and those never seen before. By default, the model chooses them if it can;
        otherwise they are random.
    """

    def __init__(
        self,
        *,
        acquisition: str = "auto",
        seed: int | None = None,
        n_startup_trials: int | None = None,
        network: AnyNetwork | None = None,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        check_acquisition(acquisition)
        if seed is not None:
            seed = require_int("seed", seed, 0)
        if n_startup_trials is not None:
            n_startup_trials = require_int("n_startup_trials", n_startup_trials, 1)
        if not isinstance(independent_sampler, BaseSampler | None):
            raise ConfigError(
                f"independent_sampler: must be an Optuna sampler, not {independent_sampler!r}."
            )
        self._acquisition, self._initial = acquisition, n_startup_trials
        self._seed = secrets.randbits(32) if seed is None else seed
        gains = acquisition in GAINS
        self._network = None if network is None else as_network(network, gains=gains)
        self._independent_sampler = independent_sampler
        self._plans: dict[str, dict[int, Plan]] = {}  # by study and number, of trials under way
        self._warned: set[str] = set()
        self._lock = lock_of(self)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters of complete trials, with one distribution each."""
        _check_single_objective(study)
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return self._within_reach(Structure.learn(trials)).distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values of these parameters, chosen jointly; of those that depend on others, if active."""
        _check_single_objective(study)
        with self._lock:
            trials = study.get_trials(deepcopy=False)
            complete = [other for other in trials if other.state == TrialState.COMPLETE]
            structure = Structure.learn(complete, search_space)
            if not structure.distributions:
                return {}
            partial = _have_more(complete, structure.distributions)
            return self._choose(study, trial, trials, structure, partial=partial, imagine=True)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """The value of a parameter outside the relative search space."""
        _check_single_objective(study)
        if self._independent_sampler is not None:
            return self._independent_sampler.sample_independent(
                study, trial, param_name, param_distribution
            )
        if param_distribution.single():
            return constant(param_distribution)
        with self._lock:
            plan = self._plans_of(study).get(trial.number, {})
            chosen, value = plan.get(param_name, (None, None))
            if chosen == param_distribution:
                return value
            return self._branch(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Tell the independent sampler, if there is one."""
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Forget the plan of the trial."""
        with self._lock:
            self._plans_of(study).pop(trial.number, None)
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        """Continue with another, random seed, as Optuna has each worker of `n_jobs` do."""
        with self._lock:
            self._seed = secrets.randbits(32)
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: v for name, v in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _lock=lock_of(self))

    def _plans_of(self, study: Study) -> dict[int, Plan]:
        return self._plans.setdefault(study.study_name, {})

    def _branch(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        """The value of a parameter, chosen with all that come with it in other trials."""
        trials = study.get_trials(deepcopy=False)
        peers = [
            other
            for other in trials
            if other.state == TrialState.COMPLETE and other.distributions.get(name) == distribution
        ]
        if not peers:
            return self._draw(trial, name, distribution)
        structure = self._within_reach(Structure.learn(peers))
        partial = _have_more(peers, structure.distributions)
        # What the trial has in common with all of them makes no difference.
        same = {
            shared
            for shared in structure.shared.distributions.keys() & trial.params.keys()
            if all(peer.params[shared] == trial.params[shared] for peer in peers)
        }
        structure = structure.without(same - {name})
        chosen = self._choose(study, trial, trials, structure, partial=partial, imagine=False)
        return chosen[name]

    def _within_reach(self, structure: Structure) -> Structure:
        """The structure, without conditional parameters if they are too many for the network."""
        if not structure.conditions:
            return structure
        fits = Translation(structure).space.d <= as_network(self._network).prior.max_dim
        return structure if fits else structure.shared

    def _choose(
        self,
        study: Study,
        trial: FrozenTrial,
        trials: list[FrozenTrial],
        structure: Structure,
        *,
        partial: bool,
        imagine: bool,
    ) -> dict[str, Any]:
        """Parameters, with the values of those that the trial has; remembered as its plan."""
        plans = self._plans_of(study)
        others = [other for other in trials if other.number != trial.number]
        with on_cpu():
            translation = Translation(structure)
            suggester = Suggester(
                as_network(self._network),
                record(translation, others, plans),
                maximise=study.directions[0] == StudyDirection.MAXIMIZE,
                acquisition=self._acquisition,
                seed=self._seed,
                initial=self._initial,
                cost=None,
                partial=partial,
                warned=self._warned,
            )
            if imagine:
                for config in undecided(translation, others, plans, trial)[:MOST_IMAGINED]:
                    suggester.ledger.open(suggester.next(config))
            # A value outside its range, as `enqueue_trial` allows, is as good as none.
            given = known(translation, trial, {}) or {}
            params = translation.to_params(suggester.next(given))
        plan = plans.setdefault(trial.number, {})
        plan.update({n: (structure.distributions[n], value) for n, value in params.items()})
        return params

    def _draw(self, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Any:
        """A uniform value, a function of the seed, the trial and the name."""
        with on_cpu():
            translation = Translation(Structure({name: distribution}, {}))
            rng = generator(self._seed, trial.number, hashed(name))
            config = translation.space.decode(sample(translation.space, 1, rng)[0])
        return translation.to_params(config)[name]


def _have_more(trials: list[FrozenTrial], distributions: Distributions) -> bool:
    """Whether some of the trials have parameters besides these, other than constants."""
    return any(
        name not in distributions and not d.single()
        for trial in trials
        for name, d in trial.distributions.items()
    )


def _check_single_objective(study: Study) -> None:
    if len(study.directions) > 1:
        raise ConfigError(
            f"AmortesSampler supports one objective, not {len(study.directions)}. "
            f"Use a sampler for several objectives, such as optuna.samplers.NSGAIISampler."
        )
