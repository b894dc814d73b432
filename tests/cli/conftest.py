from pathlib import Path

import pytest

from amortes.oracles import alpha_scores, base_scores, gain_figure
from amortes.oracles.brute_force import BruteForceConfig
from amortes.oracles.smc import SMCConfig
from amortes.training.export import export
from amortes.training.loop import train
from amortes.training.recipes import RECIPES
from amortes.training.run import TrainingRun
from tests.training.fake import fake_recipe


@pytest.fixture
def fake_transformer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe called transformer that trains within a moment."""

    left_open = ("name", "stage", "prior", "config")
    fields = {k: v for k, v in vars(fake_recipe()).items() if k not in left_open}
    monkeypatch.setitem(RECIPES, "transformer", fields)


@pytest.fixture(scope="session")
def fake_weights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Files of a base network, and of one with an alpha stage."""
    folder = tmp_path_factory.mktemp("runs")
    files = folder / "base.safetensors", folder / "alpha.safetensors"
    train(folder / "base", fake_recipe(steps=2))
    train(folder / "alpha", fake_recipe("alpha", steps=2), base=folder / "base")
    export(TrainingRun.open(folder / "base"), files[0])
    export(TrainingRun.open(folder / "alpha"), files[1])
    return files


@pytest.fixture
def small_oracles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BruteForceConfig:
    """Oracles of little precision and a cache of their own; the brute force of figures."""
    smc = SMCConfig(particles=64, final_particles=64)
    brute = BruteForceConfig(functions=1 << 11, hyperparameters=16, leaf=64, repeats=2, smc=smc)
    monkeypatch.setenv("AMORTES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(base_scores, "DATASETS", 4)
    monkeypatch.setattr(base_scores, "smc_config", lambda n: smc)
    monkeypatch.setattr(alpha_scores, "BruteForceConfig", lambda: brute)
    monkeypatch.setattr(gain_figure, "QUERIES", 16)
    return brute
