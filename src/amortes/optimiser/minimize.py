"""Optimise a function in one call, as in SciPy.

    result = minimize(train, {"lr": Float(1e-5, 1e-1, log=True)}, n_trials=50, workers=4)
    result.x, result.fun

With `state="run.json"` every change is saved, and the same call continues after a crash.
"""

import contextlib
import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from amortes.errors import ConfigError, DataError, require_int, shown
from amortes.files import as_path, exists, locked
from amortes.numbers import as_float
from amortes.optimiser.insight import Goal
from amortes.optimiser.limits import warn
from amortes.optimiser.optimizer import Optimizer
from amortes.optimiser.progress import progress_bar
from amortes.optimiser.result import Result
from amortes.optimiser.space import Config, Space
from amortes.optimiser.table import Start
from amortes.optimiser.trials import Trial, positive, robust_sd
from amortes.pretrained import AnyNetwork
from amortes.threads import use_threads

LOG = logging.getLogger(__name__)
Objective = Callable[[Config], float | tuple[float, float]]
Callback = Callable[[Optimizer, Trial], bool | None]

HOPELESS = 10
"""Failures without a single success after which there is no point in going on."""
CONVINCED = 3
"""Results in a row with a negligible expected gain before the run stops early."""


def minimize(
    fun: Objective,
    space: Space | Mapping[str, Any],
    n_trials: int,
    *,
    goal: Goal = "minimize",
    acquisition: str = "auto",
    workers: int = 1,
    timeout: float | None = None,
    early_stop: float | None = None,
    errors: Literal["record", "raise"] = "record",
    max_failures: int | None = HOPELESS,
    callback: Callback | None = None,
    progress: bool = True,
    seed: int = 0,
    initial: int | None = None,
    start: Start = (),
    network: AnyNetwork | None = None,
    cost: Callable[[Config], float] | None = None,
    state: str | os.PathLike[str] | None = None,
) -> Result:
    """Find the config with the smallest (or largest) value of a function.

        result = minimize(train, {"lr": Float(1e-5, 1e-1, log=True)}, n_trials=50, workers=4)
        result.x, result.fun

    `acquisition`, `seed`, `initial`, `start`, `network` and `cost` are those of `Optimizer`.

    fun: the function. It takes a config, a dict with a value for each parameter, and returns a
        number, or a pair of the value and its cost. NaN and infinity count as failures.
    space: the search space: a dict of parameters, or a `Space` with constraints or a pool.
    n_trials: number of evaluations in total. Failed ones count; results given as `start` do not.
    goal: "minimize" or "maximize".
    workers: number of evaluations at a time, each in its own thread.
    timeout: seconds after which no evaluation starts; running ones are waited for.
    early_stop: end the run once the expected improvement of any further evaluation has been below
        this share of the standard deviation of the values three times in a row. 0.001 is a good
        choice. Values that are far worse than all others do not count.
    errors: what to do if `fun` raises an exception or does not return a number: "record" a failed
        trial, or "raise" an error and end the run.
    max_failures: give up after this many failures (by default 10) if no evaluation has ever
        succeeded; None never gives up.
    callback: called with the optimiser and each finished trial; the run ends if it returns True.
    progress: whether to show a progress bar.
    state: a file to save the run to after every change. If it exists, the run in it continues, up
        to `n_trials` in total; trials that were running are evaluated again. Only one call at a
        time may use the file.
    """
    n_trials, workers = require_int("n_trials", n_trials, 1), require_int("workers", workers, 1)
    if max_failures is not None:
        max_failures = require_int("max_failures", max_failures, 1)
    _check(fun, timeout, early_stop, errors, callback)
    optimizer = Optimizer(
        space,
        goal,
        acquisition=acquisition,
        seed=seed,
        initial=initial,
        start=start,
        network=network,
        cost=cost,
    )
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    alone = contextlib.nullcontext() if state is None else locked(as_path(state), "`minimize`")
    with alone, progress_bar(n_trials, shown=progress) as bar, executor_of(workers) as executor:
        if state is not None and exists(state):
            optimizer = optimizer.resumed(state)
        save = (lambda: None) if state is None else (lambda: optimizer.save(state))
        run = _Run(fun, optimizer, n_trials, early_stop, errors, max_failures, callback, save)
        running: dict[Future[Any], Trial] = {}
        try:
            for finished in run.evaluate(running, executor, workers, deadline):
                bar.update(finished, run.note)
        except BaseException:
            if left := sum(not future.done() for future in running):
                bar.say(f"Waiting for {left} running evaluations; interrupt again to abandon them.")
            run.keep(running)
            raise
    LOG.info("the run ended: %s", run.message)
    return run.result()


@dataclass
class _Run:
    """The evaluations of one call of `minimize`."""

    fun: Objective
    optimizer: Optimizer
    n_trials: int
    early_stop: float | None
    errors: str
    max_failures: int | None
    callback: Callback | None
    save: Callable[[], None]
    failures: int = 0  # of this call
    cost_refused: bool = False
    negligible: int = 0  # results in a row after which little gain was expected
    message: str = ""
    last_error: Exception | None = None

    def __post_init__(self) -> None:
        known = [trial.status for trial in self.optimizer.trials]
        self.succeeded = "done" in known
        known = known[self.optimizer.past :]
        self.finished = known.count("done") + known.count("failed")

    def evaluate(
        self, running: dict[Future[Any], Trial], executor: Executor, workers: int, deadline: float
    ) -> Iterator[int]:
        """Run the trials; yields how many are finished after each."""
        again = [trial for trial in self.optimizer.trials if trial.status == "pending"]
        begun = self.finished
        while True:
            while len(running) < workers and not self.message:
                if begun >= self.n_trials:
                    self.message = f"all {begun} trials are done."
                elif time.monotonic() >= deadline:
                    self.message = (
                        f"the timeout ended the run after {begun} of {self.n_trials} trials."
                    )
                else:
                    trial = again.pop(0) if again else self.optimizer.ask()
                    self.save()
                    running[executor.submit(self.fun, trial.copy().config)] = trial
                    begun += 1
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                trial = self._tell(running.pop(future), future)
                self.save()
                self.finished += 1
                self.succeeded |= trial.status == "done"
                self.failures += trial.status == "failed"
                yield self.finished
                self._consider_stopping(trial)

    def keep(self, running: dict[Future[Any], Trial]) -> None:
        """Record what is under way when the run ends by an exception: it may have cost hours."""
        for future in as_completed(running):
            if future.exception() is None:
                with contextlib.suppress(DataError):
                    self._tell_result(running[future], future.result())
            self.save()  # now: there may be no later

    def result(self) -> Result:
        """What came of it; a `DataError` if no evaluation gave a value."""
        trials = self.optimizer.trials
        if all(trial.value is None for trial in trials):
            reasons = ", ".join(dict.fromkeys(t.reason for t in trials if t.reason))
            raise DataError(
                f"none of {self.finished} evaluations returned a finite number ({reasons}). Try "
                f"calling the function on a single config of the space."
            ) from self.last_error
        best = self.optimizer.best
        assert best.value is not None
        return Result(best.config, best.value, self.finished, trials, self.optimizer, self.message)

    @property
    def note(self) -> str:
        """The best value so far, for the progress bar."""
        if all(trial.value is None for trial in self.optimizer.trials):
            return "no value yet"
        return f"best {self.optimizer.best.value:.6g}"

    def _tell(self, trial: Trial, future: Future[Any]) -> Trial:
        error = future.exception()
        if error is None:
            try:
                return self._tell_result(trial, future.result())
            except DataError as refused:
                error = refused
        if self.errors == "raise" or not isinstance(error, Exception):
            raise error
        if self.last_error is None:
            warn(
                f"the function {'raised' if future.exception() else 'returned no result:'} "
                f"{error!r} at {trial.config}. Such trials are recorded as failed; pass "
                f"errors='raise' to end the run instead."
            )
        self.last_error = error
        return self.optimizer.tell(trial, failed=True, reason=error)

    def _tell_result(self, trial: Trial, returned: Any) -> Trial:
        value, cost = _value_and_cost(returned)
        try:
            cost = None if cost is None else positive(cost)
        except DataError as refused:
            cost = None  # no reason to lose the value
            if not self.cost_refused:
                warn(f"{refused} The value is used without a cost.")
            self.cost_refused = True
        return self.optimizer.tell(trial, value, cost=cost)

    def _consider_stopping(self, trial: Trial) -> None:
        if self.callback is not None:
            answer: Any = self.callback(self.optimizer, trial)
            if isinstance(answer, bool | np.bool_) and answer:
                self.message = f"the callback ended the run after {self.finished} trials."
        if not self.succeeded and self.failures == self.max_failures:
            self.message = f"all of {self.finished} trials failed."
        if self.early_stop is None or trial.value is None:
            return
        values = [t.value for t in self.optimizer.trials if t.value is not None]
        size = robust_sd(values, maximise=self.optimizer.goal == "maximize")
        small = size > 0 and self.optimizer.expected_gain() < self.early_stop * size
        self.negligible = self.negligible + 1 if small else 0
        if self.negligible == CONVINCED:
            self.message = (
                f"little is left to gain after {self.finished} trials: the expected improvement is "
                f"below {self.early_stop:g} of the standard deviation of the values."
            )


def _value_and_cost(returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, tuple):
        return returned, None
    if len(returned) != 2:
        raise DataError(
            f"a result must be a number, or a pair of a value and its cost, not a tuple of "
            f"{len(returned)}."
        )
    return returned


def _check(fun: object, timeout: Any, early_stop: Any, errors: str, callback: object) -> None:
    if not callable(fun):
        raise ConfigError(f"fun: must be a function of a config, not {shown(fun)}.")
    if callback is not None and not callable(callback):
        raise ConfigError(
            f"callback: must be a function of the optimiser and a trial, not {shown(callback)}."
        )
    for name, given in (("timeout", timeout), ("early_stop", early_stop)):
        number = as_float(given)
        if given is not None and (number is None or not number > 0):
            raise ConfigError(f"{name}: must be a positive number or None, not {shown(given)}.")
    if not isinstance(errors, str) or errors not in ("record", "raise"):
        raise ConfigError(f"errors: must be 'record' or 'raise', not {shown(errors)}.")


@contextlib.contextmanager
def executor_of(workers: int) -> Iterator[Executor]:
    """Runs evaluations; what is still under way when the block ends is left to itself."""
    if workers == 1:
        yield Inline()
        return
    count = torch.get_num_threads()
    # A worker may begin while the next suggestion is made, on one thread.
    pool = ThreadPoolExecutor(workers, "amortes", initializer=use_threads, initargs=(count,))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class Inline(Executor):
    """Runs what is submitted at once in the caller's thread, where debuggers and Ctrl-C work."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The call's result or exception, already there."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future
