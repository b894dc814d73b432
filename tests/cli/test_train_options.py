from pathlib import Path
from typing import Any

import pytest

from amortes.cli.train_options import require_kind, train, with_steps
from amortes.errors import ConfigError
from amortes.training import loop
from amortes.training.architectures import config_class
from tests.training.fake import fake_recipe

OPTIONS: dict[str, Any] = {"hours": None, "workers": 0, "threads": 1}


def test_out_of_time_then_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = fake_recipe(steps=2)
    train(tmp_path / "run", recipe, None, OPTIONS | {"hours": 0.0})
    told = capsys.readouterr().err
    assert "Step 0 of 2" in told
    assert "Start the same command again" in told
    train(tmp_path / "run", recipe, None, OPTIONS)
    assert "Step 2 of 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("network", "says"), [("fake", "Next: amortes train alpha"), ("kernel", "Next: amortes export")]
)
def test_after_the_base_comes_alpha_if_gains_are_learned(
    network: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = loop.TrainingOutcome(reason="finished", step=3, best_score=0.5)
    monkeypatch.setattr(loop, "train", lambda *args, **options: outcome)
    train(tmp_path, fake_recipe(network=network, config=config_class(network)()), None, OPTIONS)
    assert says in capsys.readouterr().err


def test_interrupt_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = loop.TrainingOutcome(reason="interrupted", step=3, best_score=None)
    monkeypatch.setattr(loop, "train", lambda *args, **options: outcome)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, fake_recipe(), None, OPTIONS)


def test_one_of_several_processes_does_the_talking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = loop.TrainingOutcome(reason="finished", step=3, best_score=0.5)
    monkeypatch.setattr(loop, "train", lambda *args, **options: outcome)
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        train(tmp_path, fake_recipe(), None, OPTIONS)
        assert ("best validation 0.5000" in capsys.readouterr().err) == (rank == "0")


def test_steps_are_a_setting() -> None:
    assert with_steps(("lr=1",), 3) == ["lr=1", "steps=3"]
    assert with_steps(("lr=1",), None) == ["lr=1"]


def test_recipes_have_a_kind(tmp_path: Path) -> None:
    require_kind("transformer", "alpha", "transformer", tmp_path)
    with pytest.raises(ConfigError, match="transformer trains another kind of network than kernel"):
        require_kind("transformer", "base", "kernel", tmp_path)
    with pytest.raises(ConfigError, match="no alpha stage for kernel networks"):
        require_kind("kernel", "alpha", "transformer", tmp_path)
