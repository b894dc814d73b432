"""The folder of a run.

    config.json           recipe, corpus, where weights began, and for alpha its base
    metrics.jsonl         a line per few steps: loss and the rest; validations
    newest.safetensors    the learner: weights, their average, optimiser, step
    best.safetensors      averaged weights that scored best in validation
    lessons/              what a gain network learns from (`lessons`); it can be made again

Files are replaced atomically, except that metrics grow line by line; when a run goes on, lines past
the step it goes on from are dropped. The next line is the mean of the steps since that one: fewer
than in a run never disturbed, unless it is a multiple of `log_every`. Nothing in the folder is
executable.
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from amortes import files
from amortes.errors import ConfigError, FileError, differences
from amortes.files import AnyPath, read_json, write_json, write_text
from amortes.training.learner import Learner, part
from amortes.training.lessons import FOLDER as LESSONS
from amortes.training.recipes import Recipe
from amortes.training.tensorfile import read_tensors, write_tensors

FORMAT, VERSION = "amortes-run", 1
CONFIG, METRICS = "config.json", "metrics.jsonl"
NEWEST, BEST = "newest.safetensors", "best.safetensors"


@dataclass
class Progress:
    """Where a run is, apart from its tensors."""

    step: int = 0
    seconds: float = 0.0  # spent training so far
    best_score: float | None = None


class TrainingRun:
    """The files of a run; see the module. `start` is for training, `open` for reading."""

    def __init__(self, folder: AnyPath, config: dict[str, Any]) -> None:
        self.folder, self.config = Path(folder), config
        self.newest, self.best = self.folder / NEWEST, self.folder / BEST
        self.metrics = self.folder / METRICS
        self.recipe = Recipe.from_dict(config["recipe"])

    @classmethod
    def open(cls, folder: AnyPath) -> "TrainingRun":
        """A run that was started before; `FileError` if there is none."""
        path = Path(folder) / CONFIG
        if not path.exists():
            raise FileError(f"{folder} is not the folder of a run: it has no {CONFIG}.")
        config = read_json(path)
        if not isinstance(config, dict) or config.get("format") != FORMAT:
            raise FileError(f"{path} does not describe a run of amortes.")
        if config.get("version") != VERSION:
            raise FileError(f"{path} has version {config.get('version')}, not {VERSION}.")
        try:
            return cls(folder, config)
        except (ConfigError, KeyError) as error:
            raise FileError(f"{path} does not hold a recipe this version knows: {error}") from error

    @classmethod
    def start(
        cls,
        folder: AnyPath,
        recipe: Recipe,
        *,
        corpus: str | None = None,
        base: dict[str, Any] | None = None,
        start: dict[str, Any] | None = None,
    ) -> "TrainingRun":
        """Begin a run, or go on with the one in `folder` if it is of the same recipe.

        `corpus` is the digest of the corpus that paths come from; `base` the description of the
        base (`describe`) that an alpha run stands on; `start` what the card of the file that its
        weights come from says about this stage.
        """
        config = {
            "format": FORMAT,
            "version": VERSION,
            "recipe": recipe.to_dict(),
            "corpus": corpus,
            "base": base,
            "start": start,
        }
        path = Path(folder) / CONFIG
        if not path.exists():
            if Path(folder).is_dir() and any(Path(folder).iterdir()):
                raise FileError(f"{folder} is neither empty nor a run; choose another folder.")
            write_json(path, config)
        run = cls.open(folder)
        if changed := differences(_settings(run.config), _settings(config)):
            raise ConfigError(
                f"{folder} holds a run of another recipe. Give the settings it was started with, "
                f"or another folder. Differences: {'; '.join(changed)}."
            )
        return run

    def save(self, learner: Learner, progress: Progress) -> None:
        """Replace the newest state."""
        write_tensors(
            self.newest, learner.tensors(), vars(progress), kind=f"{FORMAT}-state", version=VERSION
        )

    def save_best(self, learner: Learner, score: float) -> None:
        """Replace the best weights by the current average."""
        average = {f"average.{name}": t for name, t in learner.average.state_dict().items()}
        about = {"step": learner.step, "score": score}
        write_tensors(self.best, average, about, kind=f"{FORMAT}-weights", version=VERSION)

    def restore(self, learner: Learner) -> Progress:
        """Load the newest state into a learner."""
        tensors, about = read_tensors(self.newest, kind=f"{FORMAT}-state", version=VERSION)
        try:
            progress = Progress(**about)
            learner.load(tensors, progress.step)
        except (TypeError, FileError) as error:
            raise FileError(f"{self.newest} cannot be restored: {error}") from error
        return progress

    def weights(self) -> tuple[dict[str, Tensor], int]:
        """Averaged weights, the best ones if there was a validation, and the step they are of."""
        if self.best.exists():
            tensors, about = read_tensors(self.best, kind=f"{FORMAT}-weights", version=VERSION)
        elif self.newest.exists():
            tensors, about = read_tensors(self.newest, kind=f"{FORMAT}-state", version=VERSION)
        else:
            raise FileError(f"{self.folder} has no weights yet: train it first.")
        return part(tensors, "average"), int(about["step"])

    def describe(self) -> dict[str, Any]:
        """What a model card tells about this run: recipe, corpus, step of the weights, time."""
        _, step = self.weights()
        _, about = read_tensors(self.newest, kind=f"{FORMAT}-state", version=VERSION)
        return {
            "recipe": self.config["recipe"],
            "corpus": self.config["corpus"],
            "start": self.config.get("start"),
            "step": step,
            "seconds": round(about["seconds"]),
        }

    def log(self, line: dict[str, Any]) -> None:
        """Append one line of metrics."""
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")

    def read_metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics so far, without one that is cut short: by a kill, or just now."""
        lines = []
        if self.metrics.exists():
            for text in self.metrics.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(json.JSONDecodeError):
                    lines.append(json.loads(text))
        return lines

    def forget_after(self, step: int) -> None:
        """Drop metrics of later steps, and a last line cut short by a kill."""
        kept = [line for line in self.read_metrics() if line["step"] <= step]
        write_text(self.metrics, "".join(json.dumps(line) + "\n" for line in kept))


@contextlib.contextmanager
def locked(folder: AnyPath) -> Iterator[None]:
    """Keep other processes from training in a folder; clear what killed ones left half written."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with files.locked(folder, "training run"):
        files.clear_stale(folder, CONFIG, METRICS, NEWEST, BEST)
        for place in (folder / LESSONS).glob("*"):
            files.clear_stale(place, "*.safetensors")
        yield


def _settings(config: dict[str, Any]) -> dict[str, Any]:
    """What must not change while a run goes on; its base may have learnt more since then."""
    recipe = Recipe.from_dict(config["recipe"]).to_dict()  # with defaults for what is missing
    base = config["base"] and config["base"]["recipe"]
    return {"start": None} | config | {"recipe": recipe, "base": base}
