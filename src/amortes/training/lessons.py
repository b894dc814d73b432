"""What the gain network of a kernel network learns from: many draws of the optimum, conditioned on.

A lesson is made of a few datasets of the prior: what the network reads of each (`gain_features`),
and what it is to say, averages over `TEACHER.optima` draws by the closed form (`drawn_gains`).

*Datasets.* Two of three have noise that matters (`NOISE`): that is where the default
policy asks for information, and a prior that allows for practically no noise has few of them.

*Queries* are where a search looks: points near the best observations at all scales and points
anywhere, those that are promising, with high m + c s for some c, and some of the others.

A lesson takes seconds, a step of the network a tenth of one. So lessons are kept in files of the
run, and step s learns from the newest lesson, of `recipe.lessons` in all, and from a few of the
ones before. Which ones these are is a function of (seed, s): a run that goes on after a kill learns
the same, also if the files are gone, for then it makes them again.

Shapes: b datasets, k particles, q queries, g gains, P and F features, n observations, d dimensions.
"""

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from amortes.corpora.corpus import Corpus
from amortes.errors import ConfigError, FileError
from amortes.files import AnyPath
from amortes.nets.base import GAINS, Network
from amortes.nets.kernel import KernelNetwork
from amortes.nets.kernel.conditioning import Conditioned
from amortes.nets.kernel.gains.drawn_gains import DrawnGains
from amortes.nets.kernel.gains.gain_features import GainFeatures
from amortes.nets.kernel.network import DRAWN_PARTICLES
from amortes.nets.kernel.numpy_kernels import QUIET
from amortes.nets.kernel.optimum.representers import RepresenterConfig, joint_draws
from amortes.nets.kernel.optimum.thompson_draws import thompson_draws
from amortes.prior.gp import GPPrior, Marginal
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream, in_order
from amortes.random import generator
from amortes.threads import single_thread
from amortes.training.recipes import Recipe
from amortes.training.tensorfile import read_tensors, write_tensors

TEACHER = RepresenterConfig(count=128, num_global=256, draws=256, optima=128)
NOISE = Marginal.lognormal(-1.0, 0.8)
NOISY = 2, 3  # lessons, of so many, whose noise is that
QUERIES, CANDIDATES = 64, 384  # the latter near the best observations, and as many anywhere
PROMISING = 8  # for each c
OPTIMISM = (0.0, 0.5, 1.0, 2.0, 4.0, 100.0)
CENTRES = 8  # observations that count as the best
SCALES = (-3.0, -0.3)  # powers of ten between which distances from these are
WIDER = 1.2  # points anywhere spread so wide, so that some are clipped to faces
REPLAYED = 3  # lessons of a step besides the newest
AHEAD = 16  # batches that a process makes ahead
FOLDER = "lessons"  # in that of the run; it can be made again
KIND, VERSION = "amortes-lesson", 1


@dataclass(frozen=True)
class Lesson:
    """b datasets with q queries each, of whatever sizes."""

    pairs: Tensor  # b x k x k x P, features of pairs of particles
    queries: Tensor  # b x k x q x F, features of queries
    weights: Tensor  # b x k, of particles
    noise: Tensor  # b x k, variance of the noise
    mean: Tensor  # b x k x q, of f
    variance: Tensor  # b x k x q
    gain: Tensor  # b x g x q, what is to be said: the gain,
    told_mean: Tensor  # b x g x k x q, moments of f given the optimum,
    told_variance: Tensor  # b x g x k x q
    joint: Tensor  # b x g x k x k, and the matrix M of `gain_network`

    def __len__(self) -> int:
        """The number b of datasets."""
        return len(self.weights)

    def __str__(self) -> str:
        """What sort of datasets these are, for messages."""
        return f"{len(self)} datasets of lessons"

    @staticmethod
    def cat(lessons: "list[Lesson]") -> "Lesson":
        """Lessons one after the other."""
        return Lesson(**{name: torch.cat([vars(x)[name] for x in lessons]) for name in NAMES})


NAMES = tuple(field.name for field in dataclasses.fields(Lesson))


class LessonStream(Dataset[Lesson]):
    """Lesson after lesson, kept in a folder; `batch(step)` is what a step learns from."""

    def __init__(
        self,
        network: KernelNetwork,
        seed: int,
        tasks: TaskConfig,
        folder: Path,
        *,
        lessons: int,
        steps: int,
    ) -> None:
        self.network, self.seed, self.folder = network, seed, folder
        self.lessons, self.steps = lessons, steps
        self.streams = [TaskStream(p, seed, tasks) for p in (network.prior, noisy(network.prior))]

    def lesson(self, i: int) -> Lesson:
        """Lesson number i, from its file if there is a whole one."""
        file = self.folder / f"{i:06d}.safetensors"
        with contextlib.suppress(FileError):  # none, or a damaged one: it is made again
            return Lesson(**read_tensors(file, kind=KIND, version=VERSION)[0])
        often, of = NOISY
        lesson = make_lesson(self.network, self.streams[i % of < often].batch(i), self.seed, i)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_tensors(file, vars(lesson), {}, kind=KIND, version=VERSION)
        return lesson

    def batch(self, step: int) -> Lesson:
        """The newest lesson at that step, and some of the ones before."""
        newest = step * self.lessons // self.steps
        earlier = torch.randint(newest + 1, (REPLAYED,), generator=generator(self.seed, step))
        return Lesson.cat([self.lesson(i) for i in (newest, *earlier.tolist())])

    def __getitem__(self, step: int) -> Lesson:
        return self.batch(step)

    def batches(self, steps: range, workers: int = 0) -> Iterator[Lesson]:
        """The batches of these steps in order, made ahead by a process if there are `workers`.

        One, for several would make the same lessons.
        """
        yield from in_order(self, steps, min(workers, 1), AHEAD)


def stream_of(
    recipe: Recipe, network: Network[Any], folder: AnyPath, seed: int, corpus: Corpus | None = None
) -> TaskStream | LessonStream:
    """What a run in that folder learns from; with the seed of validations what it is scored on."""
    if not recipe.taught:
        return TaskStream(recipe.prior, seed, recipe.tasks, corpus)
    if corpus is not None:
        raise ConfigError("corpus: the alpha stage of a kernel network draws its own functions.")
    assert isinstance(network, KernelNetwork)
    place = Path(folder) / FOLDER / str(seed)
    return LessonStream(
        network, seed, recipe.tasks, place, lessons=recipe.lessons, steps=recipe.steps
    )


def noisy(prior: GPPrior) -> GPPrior:
    """The prior with noise that matters."""
    return dataclasses.replace(prior, name=f"{prior.name}, noisy", noise_sd=NOISE)


@QUIET
@torch.no_grad()
def make_lesson(network: KernelNetwork, task: TaskBatch, *key: int) -> Lesson:
    """The lesson of these datasets; what is random in it is drawn from `key`."""
    with single_thread():
        centre = task.y.mean(1, keepdim=True)
        scale = torch.ones_like(centre)
        if task.y.shape[1] > 1:
            scale = task.y.std(1, keepdim=True).clamp_min(1e-9)
        state = network.condition(task.X, (task.y - centre) / scale)
        lessons = []
        rng = generator(*key)
        for i in range(len(task)):  # one by one: many draws take much memory
            conditioned = state.conditioned.dataset(i).thinned(DRAWN_PARTICLES)
            lessons.append(_of_one(network, conditioned, lesson_queries(conditioned, rng)))
        return Lesson.cat(lessons)


def _of_one(network: KernelNetwork, conditioned: Conditioned, Xq: Tensor) -> Lesson:
    assert network.gain_network is not None
    config, X = network.gain_network.config, Xq.numpy()
    features = GainFeatures(conditioned, joint_draws(conditioned, config.representers))
    (queries, mean, variance), _ = features.forward(X)
    teacher = DrawnGains(conditioned, thompson_draws(conditioned, TEACHER))
    told = [teacher.averages(name, X) for name in GAINS]
    gain, told_mean, told_variance, joint = (
        torch.from_numpy(np.stack(each, axis=1)).float() for each in zip(*told, strict=True)
    )
    return Lesson(
        pairs=torch.from_numpy(features.pairs()).half(),
        queries=torch.from_numpy(queries).half(),
        weights=conditioned.weights.float(),
        noise=conditioned.noise_variance.float(),
        mean=torch.from_numpy(mean).float(),
        variance=torch.from_numpy(variance).float(),
        gain=gain,
        told_mean=told_mean,
        told_variance=told_variance,
        joint=joint,
    )


def lesson_queries(conditioned: Conditioned, rng: torch.Generator) -> Tensor:
    """Where a search might look: `1 x QUERIES x d`; of one dataset."""
    X, d = conditioned.X[0], conditioned.X.shape[-1]
    values = (conditioned.weights[..., None] * conditioned.observed_mean).sum(1)[0]
    best = X[values.topk(min(CENTRES, len(values))).indices]
    centre = best[torch.randint(len(best), (CANDIDATES,), generator=rng)]
    low, high = SCALES
    scale = 10.0 ** (low + (high - low) * _uniform(CANDIDATES, 1, rng))
    u, share = _uniform(CANDIDATES, d, rng), _uniform(CANDIDATES, 1, rng)
    moved = u <= torch.maximum(share, u.amin(1, keepdim=True))  # one coordinate at least
    step = torch.randn(CANDIDATES, d, generator=rng, dtype=torch.float64)
    anywhere = (_uniform(CANDIDATES, d, rng) - 0.5) * WIDER + 0.5
    candidates = torch.cat([centre + scale * moved * step, anywhere]).clamp(0.0, 1.0)
    mean, sd = (t[0] for t in conditioned.rough_moments(candidates[None]))
    worth = torch.zeros(len(candidates))
    for c in OPTIMISM:
        worth[(mean + c * sd).topk(PROMISING).indices] = 1.0
    chance = worth + torch.rand(len(candidates), generator=rng, dtype=torch.float32)
    return candidates[chance.topk(QUERIES).indices][None]


def _uniform(count: int, d: int, rng: torch.Generator) -> Tensor:
    return torch.rand(count, d, generator=rng, dtype=torch.float64)
