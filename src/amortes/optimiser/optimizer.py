"""Ask what to evaluate next, tell what came of it.

    opt = Optimizer({"lr": Float(1e-5, 1e-1, log=True), "layers": Int(1, 8)}, goal="minimize")
    trial = opt.ask()
    opt.tell(trial, train(**trial.config))
    opt.best, opt.recommend(), opt.importance(), opt.plot()

The first few configs are spread over the space (a scrambled Sobol sequence); every later one
maximises an acquisition of the network fitted to all results. Trials asked for and not told yet are
pending: the next one is chosen as if they were done but their values unknown. Everything is a pure
function of the seed and the trials so far, so a saved run continues as if it had never stopped.
"""

import logging
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, Self, get_args, overload

from amortes.acquisition.units import LARGEST
from amortes.device import on_cpu
from amortes.errors import AmortesError, ConfigError, DataError, FileError, require_int, shown
from amortes.files import write_json
from amortes.nets.base import GAINS
from amortes.numbers import as_float
from amortes.optimiser import state as states
from amortes.optimiser.insight import Goal, Insight, Point
from amortes.optimiser.space import Config, Space
from amortes.optimiser.start import Start, Table, entries
from amortes.optimiser.suggest import Suggester, check_acquisition
from amortes.optimiser.table import read_results
from amortes.optimiser.trials import Ledger, Outcome, Trial
from amortes.pretrained import AnyNetwork, as_network
from amortes.threads import lock_of

LOG = logging.getLogger(__name__)


class Optimizer(Insight):
    """Suggests configs of a space; safe to use from several threads.

    space: a `Space`, or a dict of parameters.
    acquisition: auto (logei; later, with noise, jes), pes, mes or jes (information about the
        optimum), ei or logei.
    initial: number of results, or trials under way, before the network chooses; default one more
        than coordinates, at most 10.
    start: past results as (config, value) or `Trial`, and configs to try first, which pending
        trials count as; a DataFrame, a CSV or a Parquet file of results, as for `tell_frame`; or a
        function of the space that returns any of these.
    network: what predicts, as a network, its file or its name; default the one that comes with
        amortes.
    cost: a function of the config that divides the gain. Without one, costs passed to `tell` are
        learned, and divide it.
    """

    @on_cpu()
    def __init__(
        self,
        space: Space | Mapping[str, Any],
        goal: Goal = "minimize",
        *,
        acquisition: str = "auto",
        seed: int = 0,
        initial: int | None = None,
        start: Start = (),
        network: AnyNetwork | None = None,
        cost: Callable[[Config], float] | None = None,
    ) -> None:
        self.space = space if isinstance(space, Space) else Space(space)
        if not isinstance(goal, str) or goal not in get_args(Goal):
            raise ConfigError(f"goal: must be minimize or maximize, not {shown(goal)}.")
        self.goal = goal
        check_acquisition(acquisition)
        self._lock = lock_of(self)
        self._ledger = Ledger(self.space)
        self._queue: list[Config] = []
        self._suggester = Suggester(
            as_network(network, gains=acquisition in GAINS),
            self._ledger,
            maximise=goal == "maximize",
            acquisition=acquisition,
            seed=seed,
            initial=initial,
            cost=cost,
        )
        for entry in entries(start, self.space):
            self._begin_with(entry)
        self.past = len(self._ledger.trials)  # results it started from, the first of `trials`

    @overload
    def ask(self) -> Trial: ...

    @overload
    def ask(self, n: int) -> list[Trial]: ...

    @on_cpu()
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """The next trial to evaluate, or the next n, to be evaluated in parallel."""
        n = None if n is None else require_int("ask(n)", n, 1)
        with self._lock:
            known, queue = len(self._ledger.trials), list(self._queue)
            try:
                asked = [self._ledger.open(self._next()).copy() for _ in range(n or 1)]
            except BaseException:  # nobody would ever tell what was not returned
                self._ledger.forget(known)
                self._queue = queue
                raise
        for trial in asked:
            LOG.info("asked: %r", trial)
        return asked[0] if n is None else asked

    @on_cpu()
    def tell(
        self,
        trial: Point,
        value: float | None = None,
        *,
        cost: float | None = None,
        failed: bool = False,
        reason: str | BaseException | None = None,
        violation: float | None = None,
    ) -> Trial:
        """Report the value of a trial, or that it failed; the trial as it is now.

        A config counts as the pending trial of that config or, if there is none, as a new result. A
        value of NaN or infinity is a failure: remembered and avoided, but not learned from. That is
        better than a large number in place of a value that is missing, which says how bad a
        failure is.

        `violation` is for a constraint that only an evaluation can tell: by how much it is
        violated, at most 0 if it is not (of several, the largest). Where it is, the trial counts as
        failed; where it will be is learned, from results that satisfy it too.

        The noise is inferred, one level for all results, and cannot be given. If a result is an
        average, tell the single measurements instead.
        """
        outcome = Outcome.of(value, cost, failed, reason, violation)
        with self._lock:
            if outcome.value is None and LARGEST < abs(as_float(value) or 0.0) < math.inf:
                self._suggester.warn(
                    "large",
                    f"a value of {as_float(value):g} counts as failed: at most {LARGEST:g} is "
                    f"supported. Rescale the objective, or take its logarithm.",
                )
            if isinstance(trial, Trial):
                self._check_own(trial)
                return self._close(trial.number, outcome)
            known = self._ledger.pending(trial)
            if known is None and (near := self._ledger.nearly_pending(trial)):
                self._suggester.warn(
                    "rounded",
                    f"a result was told for {dict(trial)}, which differs a little from pending "
                    f"trial {near.number}, {near.config}; that one stays pending. `tell(trial, "
                    f"value)` closes it, `withdraw(trial)` drops it.",
                )
            known = known or self._ledger.open(trial)
            return self._close(known.number, outcome)

    @on_cpu()
    def tell_frame(self, table: Table) -> list[Trial]:
        """Report the results in a DataFrame, or in a CSV or Parquet file; none if a row is wrong.

        There is a column for each parameter and one named value, NaN for failures; perhaps others
        of `to_frame`. A row whose config is pending closes that trial, any other is a new result;
        trials without a result, pending or withdrawn, are left out.
        """
        results = read_results(table, self.space)
        with self._lock:
            return [self._tell_result(result) for result in results]

    @on_cpu()
    def withdraw(self, trial: Trial | Mapping[str, Any]) -> None:
        """Take a trial back, pending or told, as if it had never been.

        For a worker that is gone, a failure whose cause is fixed, or a mistyped result: withdraw
        the trial, then tell its config. A config counts as the pending trial of that config or, if
        there is none, as the last one told.
        """
        with self._lock:
            if isinstance(trial, Trial):
                self._check_own(trial)
                self._ledger.withdraw(trial.number)
                return
            known = self._ledger.pending(trial) or self._ledger.last_told(trial)
            if known is None:
                raise DataError(f"there is no trial with the config {shown(trial)} to withdraw.")
            self._ledger.withdraw(known.number)

    @on_cpu()
    def enqueue(self, config: Mapping[str, Any]) -> None:
        """Have a config tried next, before anything else that was not enqueued earlier."""
        checked = self.space.check(config)
        if not self.space.allows(checked):
            raise DataError(f"the config {checked} is not in the pool, or violates a constraint.")
        with self._lock:
            self._queue.append(checked)

    @property
    def state(self) -> dict[str, Any]:
        """The run as JSON-ready values; `from_state` continues it exactly."""
        with self._lock:
            return {
                "format": states.FORMAT,
                "version": states.VERSION,
                "space": self.space.to_dict(),
                "goal": self.goal,
                "acquisition": self._suggester.acquisition,
                "seed": self._suggester.seed,
                "initial": self._suggester.initial,
                "network": self._suggester.fingerprint,
                "cost_function": self._suggester.cost is not None,
                "queue": [self.space.to_json(config) for config in self._queue],
                "past": self.past,
                "trials": self._ledger.to_list(),
            }

    @classmethod
    @on_cpu()
    def from_state(
        cls,
        state: Mapping[str, Any],
        *,
        space: Space | Mapping[str, Any] | None = None,
        network: AnyNetwork | None = None,
        cost: Callable[[Config], float] | None = None,
    ) -> Self:
        """The optimiser `state` described; give the network and the cost function it had.

        `space`, the same again, is needed if a file cannot have all of it: choices that are not
        JSON, constraints that are functions.
        """
        fields = states.check_state(state)
        if fields["cost_function"] != (cost is not None):
            had = "a" if fields["cost_function"] else "no"
            raise ConfigError(f"cost: the saved run had {had} cost function; pass the same again.")
        optimizer = cls(
            states.check_space(fields["space"], space),
            fields["goal"],
            acquisition=fields["acquisition"],
            seed=fields["seed"],
            initial=fields["initial"],
            network=network,
            cost=cost,
        )
        try:
            optimizer._ledger.restore(fields["trials"])
            for config in fields["queue"]:
                optimizer.enqueue(optimizer.space.from_json(config))
        except (TypeError, DataError) as error:
            raise FileError(f"the state is damaged: {error}") from None
        optimizer.past = fields["past"]
        if optimizer.past not in range(len(optimizer._ledger.trials) + 1):
            raise FileError(f"the state is damaged: {optimizer.past} past results.")
        suggester = optimizer._suggester
        if suggester.fingerprint != fields["network"]:
            suggester.warn(
                "network", "this run was begun with another network; suggestions will differ."
            )
        return optimizer

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a JSON file; it is either replaced whole or left alone."""
        with self._lock:  # else an older state might overwrite a newer one
            write_json(path, self.state)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        space: Space | Mapping[str, Any] | None = None,
        network: AnyNetwork | None = None,
        cost: Callable[[Config], float] | None = None,
    ) -> Self:
        """Continue the run saved at `path`; pending trials may still be told.

        The other arguments are those of `from_state`.
        """
        state = states.read_state(path)
        try:
            return cls.from_state(state, space=space, network=network, cost=cost)
        except AmortesError as error:
            raise type(error)(f"{path}: {error}") from None

    def resumed(self, path: str | os.PathLike[str]) -> Self:
        """The run saved at `path`, if it has the settings of this one; else a `ConfigError`.

        The network and the cost function are those of this one.
        """
        states.check_same(states.read_state(path), self.state, path)
        other = self.load(
            path,
            space=self.space,
            network=self._suggester.network,
            cost=self._suggester.cost,
        )
        if _results(other.trials[: other.past]) != _results(self.trials):
            raise ConfigError(
                f"start: the run in {path} began with {other.past} past results, which are not the "
                f"{self.past} given now. Give the same again to go on, and tell others to its "
                f"optimiser."
            )
        return other

    def _tell_result(self, result: Trial) -> Trial:
        """Record the outcome of another's trial, as that of a pending one if its config is."""
        failed = result.status == "failed"
        outcome = Outcome.of(result.value, result.cost, failed, result.reason, result.violation)
        known = self._ledger.pending(result.config) or self._ledger.open(result.config)
        return self._close(known.number, outcome)

    def _close(self, number: int, outcome: Outcome) -> Trial:
        trial = self._ledger.close(number, outcome).copy()
        LOG.info("told: %r", trial)
        return trial

    def _begin_with(self, entry: Any) -> None:
        if isinstance(entry, Trial):
            if entry.status == "withdrawn":
                return
            if entry.status == "pending":
                self.enqueue(entry.config)
                return
            self._tell_result(entry)
        elif isinstance(entry, Mapping):
            self.enqueue(entry)
        elif isinstance(entry, tuple | list) and len(entry) == 2:
            self.tell(entry[0], entry[1])
        else:
            raise DataError(
                f"start: expected (config, value), a Trial, or a config to try first, "
                f"not {shown(entry)}."
            )

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: part for name, part in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = lock_of(self)

    def _next(self) -> Config:
        return self._queue.pop(0) if self._queue else self._suggester.next()


def _results(trials: list[Trial]) -> list[tuple[Config, Outcome]]:
    return [(t.config, Outcome(t.status, t.value, t.cost, t.reason, t.violation)) for t in trials]
