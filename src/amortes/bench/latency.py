"""How long a suggestion takes after new data: ours, those of BoTorch's models and of Optuna.

For every number of points n, each of several datasets is handed to each method, and the wall-clock
time until it says what to evaluate next is taken, on one thread. Datasets are drawn from the
network's prior, with points such as an optimisation leaves (`draw`), or they are the first n
results of real runs on a problem of the benchmarks (`run_on`).

    amortes                    `Optimizer.ask` in a run: all results but the last were known before
    ..., from scratch          the same with all results new, as after loading a run
    MAP GP + LogEI, GIBBON     BoTorch: fit `SingleTaskGP`, maximise by `optimize_acqf`
    Optuna's GP                `GPSampler` with its default settings, in a run, too: it begins with
                               what it has fitted before; fit and search are one
    fully Bayesian GP + JES    BoTorch: MCMC over hyperparameters; optional, as it takes minutes
    ..., compiled code         the same without the time to compile

The others are those of the benchmarks (`amortes.bench.methods`), with the paper's 128 raw samples
and 10 restarts. Sampled functions of the fully Bayesian GP are climbed from 20 starts, as BoTorch
does by default. Its MCMC, BoTorch's `fit_fully_bayesian_model_nuts`, compiles for each number of
points it has not met yet. In an optimisation that is every step, so here each of its datasets has
one point less than the one before. The second row is of our sampler of the benchmarks (`paper_gp`),
which pads data to a few sizes; it is timed when these are compiled.

What a user waits for once, to import amortes and load the network, and the memory it takes, is
measured in a process of its own.
"""

import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from amortes.bench.methods.ours import Ours
from amortes.bench.methods.registry import method_factory
from amortes.bench.protocol import MethodFactory, Problem, initial_points, noise, optimise
from amortes.nets.base import Network
from amortes.optimiser import AmortesWarning, Float, Optimizer
from amortes.prior.tasks import TaskConfig, TaskStream
from amortes.threads import single_thread

OURS, LOGEI, GIBBON, OPTUNA = "amortes", "MAP GP + LogEI", "MAP GP + GIBBON", "Optuna's GP"
SCRATCH = f"{OURS}, from scratch"
FULLY_BAYESIAN = "fully Bayesian GP + JES"
COMPILED = f"{FULLY_BAYESIAN}, compiled code"
MCMC = (FULLY_BAYESIAN, COMPILED)
MCMC_REPEATS = 3  # datasets of each size that methods with MCMC are timed on


class Seconds(NamedTuple):
    """Of one suggestion."""

    fit: float  # condition the network, or fit the model
    search: float


Stopwatch = Callable[[Tensor, Tensor, int], Seconds]
"""Seconds for the next suggestion given X, `n x d`, y, `n`, and a seed."""
Datasets = Callable[[int], Iterable[tuple[Tensor, Tensor]]]
"""X, `n x d`, and y, `n`, of several datasets, given n."""


Row = dict[str, Any]
"""Medians of one method at one number of points, in milliseconds, and how many times ours."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """What it takes to begin, measured in a fresh process."""

    import_seconds: float  # from nothing to an Optimizer with its network
    peak_mib: float  # of the process, after a suggestion from the most points


def compare(
    network: Network[Any],
    datasets: Datasets,
    *,
    d: int,
    points: Sequence[int],
    seed: int,
    fully_bayesian: bool,
) -> Iterator[Row]:
    """A row for each number of points and method; medians of all datasets but the first."""
    methods = {
        OURS: ours(network, known=1),
        SCRATCH: ours(network),
        LOGEI: _timed(method_factory("map-logei"), d),
        GIBBON: _timed(method_factory("map-gibbon"), d),
        OPTUNA: optunas_gp,
    }
    method_factory("optuna-gp")  # says what is missing, if anything is
    if fully_bayesian:
        methods |= _fully_bayesian(d)
    with single_thread():
        for n in points:
            times: dict[str, list[Seconds]] = {name: [] for name in methods}
            for i, (X, y) in enumerate(datasets(n)):
                for name, method in methods.items():
                    if i == 0:
                        method(X, y, seed)  # what is only slow once, such as to compile
                    elif i <= MCMC_REPEATS or name not in MCMC:
                        m = max(1, n - i) if name == FULLY_BAYESIAN else n
                        times[name].append(method(X[:m], y[:m], seed + i))
            yield from rows(n, times)


def rows(n: int, times: dict[str, list[Seconds]]) -> Iterator[Row]:
    """Medians by method, ours the first."""
    ours = 1e3 * statistics.median(map(sum, times[OURS]))
    for name, taken in times.items():
        fit, search = (1e3 * statistics.median(part) for part in zip(*taken, strict=True))
        ms = 1e3 * statistics.median(map(sum, taken))
        row = {"n": n, "method": name, "ms": ms, "fit_ms": fit, "search_ms": search}
        yield row | {"times_ours": ms / ours}


def draw(
    network: Network[Any], d: int, n: int, count: int, seed: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Datasets of the network's prior: X, `n x d`, and y, `n`."""
    stream = TaskStream(network.prior, seed, TaskConfig(batch_size=1, num_queries=1))
    for i in range(count):
        task = stream.batch_of(i, d, n)
        yield task.X[0], task.y[0]


def run_on(network: Network[Any], problem: Problem, most: int, count: int, seed: int) -> Datasets:
    """The first n <= `most` results of our own runs on a problem, by the default policy."""

    def method(problem: Problem, seed: int) -> Ours:
        return Ours(problem, seed, network, "auto")

    runs = []
    for i in range(count):
        records = optimise(problem, method, seed=seed + i, iterations=most)
        first = initial_points(problem, seed + i)
        X = torch.cat([first, torch.tensor([r.x for r in records[1:]], dtype=torch.float64)])
        y = problem.value(X) + noise(problem, seed + i, most)
        runs.append((X, y))
    return lambda n: [(X[:n], y[:n]) for X, y in runs]


def ours(network: Network[Any], known: int | None = None) -> Stopwatch:
    """`Optimizer.ask` with its default acquisition; all but the last `known` results are not new.

    The fit, which is kept for what follows, is made first to be timed.
    """

    def method(X: Tensor, y: Tensor, seed: int) -> Seconds:
        names = [f"x{i}" for i in range(X.shape[1])]
        configs = [dict(zip(names, x, strict=True)) for x in X.tolist()]
        results = list(zip(configs, y.tolist(), strict=True))
        before = results[: -(known or len(results))]
        space = {name: Float(0.0, 1.0) for name in names}
        optimizer = Optimizer(space, "maximize", seed=seed, start=before, network=network)
        with warnings.catch_warnings():
            # That there are more results than the network was trained for, once for each dataset.
            warnings.simplefilter("ignore", AmortesWarning)
            if before:
                optimizer.predict(configs[0])
            for result in results[len(before) :]:
                optimizer.tell(*result)
            begin = time.perf_counter()
            optimizer._suggester.fitted()
            fitted = time.perf_counter()
            optimizer.ask()
            return Seconds(fitted - begin, time.perf_counter() - fitted)

    return method


def optunas_gp(X: Tensor, y: Tensor, seed: int) -> Seconds:
    """`Study.ask` after one more result, of a sampler that has been asked before."""
    from optuna.trial import TrialState

    from amortes.bench.methods.optuna_samplers import OptunaMethod

    method = OptunaMethod(_Unseen(X.shape[1]), seed, "gp")
    method.begin(seed)
    method.add(X[:-1], y[:-1])
    method.study.tell(method.study.ask(method.space), state=TrialState.FAIL)
    method.add(X[-1:], y[-1:])
    begin = time.perf_counter()
    method.study.ask(method.space)
    return Seconds(0.0, time.perf_counter() - begin)


def _fully_bayesian(d: int) -> dict[str, Stopwatch]:
    """JES of the fully Bayesian GP with BoTorch's defaults, as BoTorch compiles it and compiled."""
    method_factory("fb-jes")  # says what is missing, if anything is
    from amortes.bench.methods.fully_bayesian import FullyBayesian
    from amortes.bench.methods.map_gp import BOTORCH_PATH_RESTARTS as STARTS
    from amortes.bench.methods.paper_gp import fit, fit_by_botorch

    def timed(sampler: Callable[[Tensor, Tensor, int], Any]) -> Stopwatch:
        return _timed(lambda problem, seed: FullyBayesian(problem, seed, "jes", STARTS, sampler), d)

    return {FULLY_BAYESIAN: timed(fit_by_botorch), COMPILED: timed(fit)}


def _timed(factory: MethodFactory, d: int) -> Stopwatch:
    """A method of the benchmarks, without its recommendation."""

    def method(X: Tensor, y: Tensor, seed: int) -> Seconds:
        step = factory(_Unseen(d), seed).step(X, y)
        return Seconds(step.fit_seconds, step.search_seconds)

    return method


class _Unseen(Problem):
    """A problem of which a method may only know the dimension."""

    name = "latency"

    def __init__(self, d: int) -> None:
        self.d = d

    def value(self, X: Tensor) -> Tensor:
        raise NotImplementedError("methods see observations only.")


FRESH = """
import json, resource, sys, time
begin = time.perf_counter()
from amortes import Float, Optimizer
optimizer = Optimizer({f"x{i}": Float(0.0, 1.0) for i in range(int(sys.argv[1]))})
seconds = time.perf_counter() - begin
import torch
torch.set_num_threads(1)
for _ in range(int(sys.argv[2])):
    config = optimizer.space.decode(torch.rand(int(sys.argv[1]), dtype=torch.float64))
    optimizer.tell(config, sum(config.values()))
optimizer.ask()
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def measure_start(d: int, n: int) -> Start:
    """Start a fresh process that makes an optimiser, and then suggests from n results."""
    command = [sys.executable, "-W", "ignore", "-c", FRESH, str(d), str(n)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds, peak = json.loads(output)
    unit = 1 << (20 if sys.platform == "darwin" else 10)  # bytes there, kibibytes elsewhere
    return Start(import_seconds=seconds, peak_mib=peak / unit)
