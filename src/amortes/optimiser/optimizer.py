"""Ask what to evaluate next, and tell the result.

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
from amortes.errors import AmortesError, ConfigError, DataError, FileError, require_int, shown
from amortes.files import write_json
from amortes.nets.base import GAINS
from amortes.numbers import as_float
from amortes.optimiser import state as states
from amortes.optimiser.insight import Goal, Insight, Point
from amortes.optimiser.space import Config, Space
from amortes.optimiser.suggest import Suggester, check_acquisition
from amortes.optimiser.table import Start, Table, entries, read_results
from amortes.optimiser.trials import ROUNDED, Ledger, Trial, outcome
from amortes.pretrained import AnyNetwork, as_network
from amortes.threads import lock_of, on_cpu

LOG = logging.getLogger(__name__)


class Optimizer(Insight):
    """Suggests which config of a search space to evaluate next.

        opt = Optimizer({"lr": Float(1e-5, 1e-1, log=True), "layers": Int(1, 8)})
        trial = opt.ask()
        opt.tell(trial, train(trial.config))

    An optimiser may be used from several threads.

    space: the search space: a dict of parameters, or a `Space` with constraints or a pool.
    goal: "minimize" or "maximize".
    acquisition: the acquisition function: auto (logei, and jes from 20 results on if they are
        noisy), logei or ei (expected improvement), or pes, mes or jes (information about the
        optimum).
    seed: seed of everything random. The same seed and results give the same suggestions.
    initial: number of trials that are spread over the space before the model chooses. By default
        one more than the number of coordinates, at most 10.
    start: past results, as (config, value) pairs or `Trial`s; configs without a value, and pending
        trials, are tried first. It may also be a table of results as for `tell_frame`, or a
        function of the space that returns any of these.
    network: the network to use: its name, a weights file, or the network itself. By default the
        first one listed by `amortes info`.
    cost: a function that returns the cost of a config; expected gains are divided by it. Without
        one, the model learns the costs passed to `tell`, if any.
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
        """Return the next trial to evaluate, or a list of n trials to evaluate in parallel.

        The trials are pending until you `tell` their results. Later suggestions take pending
        trials into account.
        """
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
        """Report the result of a trial, or that it failed. Returns the updated trial.

        trial: a trial from `ask`, or a config. A config counts as the pending trial with that
            config; if there is none, it is recorded as a new result.
        value: the result. NaN or infinity counts as a failure.
        cost: what the evaluation cost, in any unit. The model learns it, and expected gains are
            divided by it.
        failed: True if there is no result. The model learns to avoid configs that fail. Do not make
            up a large value instead: that would distort the model.
        reason: why it failed, as a string or an exception.
        violation: by how much a constraint that only an evaluation reveals is violated; zero or
            less if it is satisfied. With several constraints, the largest violation. A trial that
            violates the constraint counts as failed, and the model learns where that happens.

        The model infers the noise, one level for all results; you cannot give it. If a result is an
        average, tell the single measurements instead.
        """
        told = outcome(value, cost, failed=failed, reason=reason, violation=violation)
        with self._lock:
            if told["value"] is None and LARGEST < abs(as_float(value) or 0.0) < math.inf:
                self._suggester.warn(
                    "large",
                    f"a value of {as_float(value):g} counts as failed, because values beyond "
                    f"{LARGEST:g} are not supported. Rescale the objective, or take its logarithm.",
                )
            if isinstance(trial, Trial):
                known = self._own(trial)
            else:
                checked = self.space.check(trial)
                known = self._ledger.pending(checked) or self._new(checked)
            told_trial = self._ledger.close(known.number, told).copy()
        LOG.info("told: %r", told_trial)
        return told_trial

    def _new(self, checked: Config) -> Trial:
        for near in self._ledger.find(checked, "pending", within=ROUNDED):
            self._suggester.warn(
                "rounded",
                f"the config {checked} is almost that of pending trial {near.number}, "
                f"{near.config}, but not the same, so it was recorded as a new result. Use "
                f"`tell(trial, value)` to complete the pending trial, or `withdraw(trial)` to "
                f"drop it.",
            )
        return self._ledger.open(checked)

    @on_cpu()
    def tell_frame(self, table: Table) -> list[Trial]:
        """Report the results in a DataFrame, a CSV file or a Parquet file.

        The table needs a column for each parameter and one named `value`, with NaN for failures. It
        may have the other columns of `to_frame`. A row whose config is pending completes that
        trial; any other row is a new result. Rows that are pending or withdrawn are skipped. If a
        row is invalid, nothing is recorded and the error names the row.
        """
        results = read_results(table, self.space)
        with self._lock:
            return [self.tell(result.config, **result.told) for result in results]

    @on_cpu()
    def withdraw(self, trial: Trial | Mapping[str, Any]) -> None:
        """Forget a trial, pending or told, as if it had never happened.

        Use it for a worker that is gone, a failure whose cause is fixed, or a mistyped result; to
        correct a result, withdraw the trial and tell its config again. A config counts as the
        pending trial with that config or, if there is none, as the last one told.
        """
        with self._lock:
            if isinstance(trial, Trial):
                known = self._own(trial)
            else:
                found = self._ledger.find(self.space.check(trial), "done", "failed", "pending")
                pending = [trial for trial in found if trial.status == "pending"]
                if not found:
                    raise DataError(
                        f"no trial has the config {shown(trial)}, so none can be withdrawn."
                    )
                known = (pending or found[::-1])[0]
            self._ledger.withdraw(known.number)

    @on_cpu()
    def enqueue(self, config: Mapping[str, Any]) -> None:
        """Make `ask` return this config next, after those enqueued earlier."""
        checked = self.space.check(config)
        if not self.space.allows(checked):
            raise DataError(f"the config {checked} violates a constraint or is not in the pool.")
        with self._lock:
            self._queue.append(checked)

    @property
    def state(self) -> dict[str, Any]:
        """The run as a JSON-ready dict; `from_state` continues it."""
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
        """Restore an optimiser from its `state`.

        state: a dict from the attribute `state`.
        space: the space of the run; needed only if JSON cannot express all of it, because it has
            constraints that are functions, or choices such as classes.
        network: the network of the run, if it is not the default.
        cost: the cost function of the run, if it had one.
        """
        fields = states.check_state(state)
        if fields["cost_function"] != (cost is not None):
            had = "a" if fields["cost_function"] else "no"
            raise ConfigError(f"cost: the saved run had {had} cost function; pass the same one.")
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
            raise FileError(f"the saved run is damaged: {error}") from None
        optimizer.past = fields["past"]
        if optimizer.past not in range(len(optimizer._ledger.trials) + 1):
            raise FileError(f"the saved run is damaged: {optimizer.past} past results.")
        suggester = optimizer._suggester
        if suggester.fingerprint != fields["network"]:
            suggester.warn(
                "network",
                "this run was started with another network, so suggestions will differ.",
            )
        return optimizer

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the run to a JSON file. An existing file is replaced atomically."""
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
        """Load the run saved at `path`. It continues as if it had never stopped.

        Pending trials stay pending, and their results can be told. The other arguments are those of
        `from_state`.
        """
        state = states.read_state(path)
        try:
            return cls.from_state(state, space=space, network=network, cost=cost)
        except AmortesError as error:
            raise type(error)(f"{path}: {error}") from None

    def resumed(self, path: str | os.PathLike[str]) -> Self:
        """Load the run saved at `path`, which must have the same settings as this optimiser.

        If a setting differs, it raises a `ConfigError`. The network and the cost function are those
        of this optimiser.
        """
        states.check_same(states.read_state(path), self.state, path)
        other = self.load(
            path,
            space=self.space,
            network=self._suggester.network,
            cost=self._suggester.cost,
        )
        began = [(trial.config, trial.told) for trial in other.trials[: other.past]]
        if began != [(trial.config, trial.told) for trial in self.trials]:
            raise ConfigError(
                f"start: the run in {path} started from {other.past} past results, which differ "
                f"from the {self.past} given now. Pass the same ones to continue; to add others, "
                f"load the run with `Optimizer.load` and tell them."
            )
        return other

    def _begin_with(self, entry: Any) -> None:
        if isinstance(entry, Trial):
            if entry.status == "pending":
                self.enqueue(entry.config)
            elif entry.status != "withdrawn":
                self.tell(entry.config, **entry.told)
        elif isinstance(entry, Mapping):
            self.enqueue(entry)
        elif isinstance(entry, tuple | list) and len(entry) == 2:
            self.tell(entry[0], entry[1])
        else:
            raise DataError(
                f"start: expected a (config, value) pair, a trial, or a config to try first, not "
                f"{shown(entry)}."
            )

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: part for name, part in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = lock_of(self)

    def _next(self) -> Config:
        return self._queue.pop(0) if self._queue else self._suggester.next()
