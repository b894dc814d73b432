"""Our own: a network conditioned on the data, and one of its scores.

The search for the best score and its effort are those of `amortes.Optimizer`, of which this is the
inside without parameters, trials and pending points.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from amortes.acquisition import Domain, Fitted, maximise
from amortes.acquisition.output_warp import fit_warped
from amortes.acquisition.policy import automatic
from amortes.acquisition.pool import Score
from amortes.bench.methods.model_based import ModelBased, highest_unseen
from amortes.bench.protocol import Problem
from amortes.errors import FileError
from amortes.files import sha256
from amortes.nets.base import GAINS, Network
from amortes.optimiser.model import AROUND
from amortes.pretrained import as_network, names, weights_path

DIGITS = 12  # of a digest: no two weights anybody makes agree in so many


class Ours(ModelBased[Fitted]):
    """A score of a network: pes, mes, jes, ei, logei, or auto: the default policy."""

    def __init__(self, problem: Problem, seed: int, network: Network[Any], score: str) -> None:
        super().__init__(problem, seed)
        self.network, self.score = network, score

    def fit(self, X: Tensor, y: Tensor, seed: int) -> Fitted:
        """Condition the network; nothing in it is random."""
        return fit_warped(self.network, X, y, maximise=True)

    def search(self, model: Fitted, X: Tensor, seed: int) -> Tensor:
        """Maximise the score by our own search, never at a point of X."""
        name = automatic(model) if self.score == "auto" else self.score

        def score(Xq: Tensor) -> Tensor:
            return model.score(name, Xq)

        if self.pool is not None:
            return highest_unseen(score, self.pool, X, rough=model.rough_moments)
        return maximise(
            score,
            Domain.cube(self.d),
            seed=seed,
            around=model.best_points(AROUND),
            exclude=X,
            scale=model.lengthscale,
            rough=model.rough_moments,
        ).x

    def mean(self, model: Fitted) -> Score:
        """The posterior mean of the function."""
        return lambda Xq: model.score("mean", Xq)


class OursFactory:
    """Makes runs with one network, loaded when the first of them is made."""

    def __init__(self, score: str, weights: str) -> None:
        """Take `weights`, the name of a pretrained network or the path of its file."""
        self.score, self.weights = score, weights

    def __call__(self, problem: Problem, seed: int) -> Ours:
        """One run."""
        return Ours(problem, seed, self._network, self.score)

    @cached_property
    def digest(self) -> str:
        """The start of the SHA-256 of the weights file, which may change while its name stays.

        A file that has no network, or not the gains that are asked for, is an error.
        """
        file = self._file
        _ = self._network
        return sha256(file)[:DIGITS]

    @property
    def _file(self) -> Path:
        if self.weights in names():
            return weights_path(self.weights)
        if not Path(self.weights).is_file():
            raise FileError(
                f"{self.weights} does not exist; the weights of a method are a file, or one of "
                f"{', '.join(names())}."
            )
        return Path(self.weights)

    @cached_property
    def _network(self) -> Network[Any]:
        return as_network(self.weights, gains=self.score in GAINS)
