"""`AmortesSearch`: a `Searcher` for Ray Tune."""

from collections.abc import Mapping, Sequence
from typing import Any

from ray.tune.search import Searcher

from amortes.errors import ConfigError, DataError, FileError, about, shown
from amortes.files import AnyPath, read_json, write_json
from amortes.integrations.ray.translate import Translation
from amortes.optimiser import Optimizer, Space
from amortes.optimiser.limits import warn
from amortes.optimiser.suggest import check_acquisition
from amortes.pretrained import AnyNetwork, as_network

FORMAT = "amortes-ray"
MODES = {"min": "minimize", "max": "maximize"}


class AmortesSearch(Searcher):  # type: ignore[misc]
    """A searcher for Ray Tune that chooses configs with a fully Bayesian Gaussian process.

        tune_config = tune.TuneConfig(
            search_alg=AmortesSearch(seed=0), metric="loss", mode="min", num_samples=50
        )
        tune.Tuner(train, param_space={"lr": tune.loguniform(1e-5, 1e-1)}, tune_config=tune_config)

    The last result that a trial reported counts, even if a scheduler stopped the trial. A trial
    that raised an error or reported NaN counts as failed, and the search learns to avoid its
    neighbourhood. Suggestions take running trials into account.

    `acquisition`, `seed`, `initial` and `network` are those of `amortes.Optimizer`. The attribute
    `optimizer` is that optimiser, once the space is known.

    space: a dict of Tune's domains (`tune.uniform`, ...) or of parameters of amortes (`Float`,
        ...), or a `Space`, which may have constraints. By default the `param_space` of the `Tuner`.
    metric: the name of the result to optimise. By default that of the `TuneConfig`.
    mode: "min" or "max". By default that of the `TuneConfig`.
    points_to_evaluate: configs to try first.
    evaluated_rewards: values of the first of `points_to_evaluate`, if they are already known.
    """

    def __init__(
        self,
        space: Any = None,
        metric: str | None = None,
        mode: str | None = None,
        *,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        evaluated_rewards: Sequence[float] | None = None,
        acquisition: str = "auto",
        seed: int = 0,
        initial: int | None = None,
        network: AnyNetwork | None = None,
    ) -> None:
        if mode is not None and (not isinstance(mode, str) or mode not in MODES):
            raise ConfigError(
                f"mode: must be 'min' or 'max', not {shown(mode)}; only one objective is supported."
            )
        check_acquisition(acquisition)
        super().__init__(metric=metric, mode=mode)
        self._metric: str | None = metric
        self._mode: str | None = mode
        self.optimizer: Optimizer | None = None
        self._settings: dict[str, Any] = {
            "acquisition": acquisition,
            "seed": seed,
            "initial": initial,
            "network": None if network is None else as_network(network),
        }
        self._first = list(points_to_evaluate or ())
        self._known = list(evaluated_rewards or ())
        if len(self._known) > len(self._first):
            raise ConfigError(
                f"evaluated_rewards: has {len(self._known)} values, but there are only "
                f"{len(self._first)} points_to_evaluate."
            )
        self._own_space = space is not None
        self._translation = Translation.of(space, constants=True) if self._own_space else None
        self._numbers: dict[str, int] = {}  # of our trials, by the names of Tune
        self._saved: dict[str, Any] | None = None  # restored, but for a space not known yet
        self._begin()

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: Mapping[str, Any], **spec: Any
    ) -> bool:
        """Take over what the `Tuner` knows: metric, mode, and the space unless there is one."""
        self._metric, self._mode = metric or self._metric, mode or self._mode
        if not self._own_space:
            translation, known = Translation.of(config, constants=False), self._translation
            if known is not None and known.space.to_dict() != translation.space.to_dict():
                raise ConfigError("param_space: differs from that of the saved searcher.")
            self._translation = translation
        self._begin()
        return not self._own_space

    def suggest(self, trial_id: str) -> dict[str, Any]:
        """What varies in the config of the next trial."""
        optimizer, translation = self._ready()
        trial = optimizer.ask()
        self._numbers[trial_id] = trial.number
        return translation.config(trial.config)

    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Nothing yet: a trial counts by its last result, when it is complete."""

    def on_trial_complete(
        self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False
    ) -> None:
        """Tell the last result of a trial, or that it failed."""
        optimizer, _ = self._ready()
        number = self._numbers.get(trial_id)
        if number is None or optimizer.trials[number].status == "done":
            return  # not suggested here, or told before
        trial: Any = optimizer.trials[number]
        if trial.status == "failed":  # Tune has run it again
            optimizer.withdraw(trial)
            trial = trial.config
        if error:
            told = optimizer.tell(trial, failed=True, reason="the trial raised an error")
        elif not result or self._metric is None or self._metric not in result:
            warn(
                f"trial {trial_id} ended without {self._metric!r} in its last result, so it counts "
                f"as failed. Report that metric, or check its name."
            )
            told = optimizer.tell(trial, failed=True, reason=f"no {self._metric} was reported")
        else:
            try:
                told = optimizer.tell(trial, result[self._metric])
            except DataError as refused:
                warn(f"trial {trial_id} counts as failed: {self._metric}: {refused}")
                told = optimizer.tell(trial, failed=True, reason=refused)
        self._numbers[trial_id] = told.number

    def add_evaluated_point(
        self,
        parameters: Mapping[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: Sequence[float] | None = None,
    ) -> None:
        """Tell a result from elsewhere."""
        optimizer, translation = self._ready()
        config = translation.read(parameters)
        if error:
            optimizer.tell(config, failed=True)
        else:
            optimizer.tell(config, value)

    def save(self, checkpoint_path: AnyPath) -> None:
        """Save the searcher to a JSON file."""
        write_json(checkpoint_path, {"format": FORMAT, **self.get_state()})

    def restore(self, checkpoint_path: AnyPath) -> None:
        """Continue from a file written by `save`. The network must be the same.

        So must the space, if JSON cannot express all of it, because it has constraints that are
        functions, or choices such as classes.
        """
        state = read_json(checkpoint_path)
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise FileError(f"{checkpoint_path} was not saved by AmortesSearch.")
        with about(f"{checkpoint_path}:"):
            self.set_state(state)

    def get_state(self) -> dict[str, Any]:
        """JSON-ready values; `set_state` goes on from them."""
        translation = self._translation
        return {
            "metric": self._metric,
            "mode": self._mode,
            "optimizer": None if self.optimizer is None else self.optimizer.state,
            "numbers": dict(self._numbers),
            "translation": None if translation is None else translation.to_dict(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` gave; a space that is known already has to be the same."""
        if missing := {"metric", "mode", "optimizer", "numbers", "translation"} - state.keys():
            raise FileError(f"the state of a searcher lacks {', '.join(sorted(missing))}.")
        if self._translation is None and state["translation"] and state["optimizer"]:
            # `Tuner.restore` does not say the space again.
            space = Space.from_dict(state["optimizer"]["space"])
            self._translation = Translation.from_dict(state["translation"], space)
        self._metric, self._mode = state["metric"], state["mode"]
        self._numbers = dict(state["numbers"])
        self._saved, self.optimizer = state["optimizer"], None
        self._begin()

    def _begin(self) -> None:
        """Make the optimiser, once all that it needs is known."""
        if self.optimizer is not None or self._translation is None or self._mode is None:
            return
        if self._saved is not None:
            self.optimizer = Optimizer.from_state(
                self._saved, space=self._translation.space, network=self._settings["network"]
            )
            return
        first = [self._translation.read(config) for config in self._first]
        start: list[Any] = [*zip(first, self._known, strict=False), *first[len(self._known) :]]
        goal: Any = MODES[self._mode]
        self.optimizer = Optimizer(self._translation.space, goal, start=start, **self._settings)

    def _ready(self) -> tuple[Optimizer, Translation]:
        if self.optimizer is None or self._translation is None or self._metric is None:
            raise ConfigError(
                "AmortesSearch needs a space, a metric and a mode. Pass them to AmortesSearch, or "
                "pass param_space to the Tuner, and metric and mode to its TuneConfig."
            )
        return self.optimizer, self._translation
