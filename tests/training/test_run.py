import json
from pathlib import Path
from typing import Any

import pytest
import torch

from amortes.errors import ConfigError, FileError
from amortes.training.learner import Learner
from amortes.training.run import Progress, TrainingRun, locked
from amortes.training.stages import initial_network
from tests.training.fake import FakeConfig, fake_recipe


def learner(**changes: Any) -> Learner:
    chosen = fake_recipe(**changes)
    return Learner(chosen, initial_network(chosen), torch.device("cpu"))


def test_config_round_trip(tmp_path: Path) -> None:
    TrainingRun.start(tmp_path / "run", fake_recipe(), corpus="abc")
    again = TrainingRun.open(tmp_path / "run")
    assert again.recipe == fake_recipe()
    assert again.config["corpus"] == "abc"


def test_same_recipe_goes_on_another_is_refused(tmp_path: Path) -> None:
    TrainingRun.start(tmp_path, fake_recipe())
    TrainingRun.start(tmp_path, fake_recipe())
    with pytest.raises(ConfigError, match=r"another recipe.*recipe\.lr: 0\.01 -> 0\.5"):
        TrainingRun.start(tmp_path, fake_recipe(lr=0.5))
    with pytest.raises(ConfigError, match="corpus: None -> abc"):
        TrainingRun.start(tmp_path, fake_recipe(), corpus="abc")


def test_base_may_have_learnt_more(tmp_path: Path) -> None:
    base = {"recipe": fake_recipe().to_dict(), "step": 5, "seconds": 1}
    TrainingRun.start(tmp_path, fake_recipe("alpha"), base=base)
    TrainingRun.start(tmp_path, fake_recipe("alpha"), base=base | {"step": 9})
    other = base | {"recipe": fake_recipe(lr=0.5).to_dict()}
    with pytest.raises(ConfigError, match=r"base\.lr"):
        TrainingRun.start(tmp_path, fake_recipe("alpha"), base=other)


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("x")
    with pytest.raises(FileError, match="neither empty nor a run"):
        TrainingRun.start(tmp_path, fake_recipe())
    with pytest.raises(FileError, match="not the folder of a run"):
        TrainingRun.open(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "does not describe a run"),
        ('{"format": "other"}', "does not describe a run"),
        ('{"format": "amortes-run", "version": 99}', "version 99"),
        ('{"format": "amortes-run", "version": 1}', "recipe"),
        ('{"format": "amortes-run", "version": 1, "recipe": {"network": "magic"}}', "magic"),
    ],
)
def test_damaged_config(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(FileError, match=message):
        TrainingRun.open(tmp_path)


def test_state_round_trip(tmp_path: Path) -> None:
    run = TrainingRun.start(tmp_path, fake_recipe())
    saved, other = learner(), learner(seed=3)
    saved.step = 7
    run.save(saved, Progress(step=7, seconds=2.5, best_score=0.25))
    assert run.restore(other) == Progress(step=7, seconds=2.5, best_score=0.25)
    assert other.step == 7
    for name, tensor in saved.tensors().items():
        assert torch.equal(other.tensors()[name], tensor)


def test_state_of_another_network_is_refused(tmp_path: Path) -> None:
    run = TrainingRun.start(tmp_path, fake_recipe())
    run.save(learner(config=FakeConfig(width=5)), Progress())
    with pytest.raises(FileError, match=r"newest.safetensors cannot be restored"):
        run.restore(learner())


def test_weights_are_the_best_average_else_the_newest(tmp_path: Path) -> None:
    run = TrainingRun.start(tmp_path, fake_recipe())
    with pytest.raises(FileError, match="no weights yet"):
        run.weights()
    newest, best = learner(), learner(seed=3)
    newest.step, best.step = 9, 4
    run.save(newest, Progress(step=9, seconds=7200.4))
    weights, step = run.weights()
    assert step == 9
    assert torch.equal(weights["base.0.weight"], newest.average.state_dict()["base.0.weight"])
    run.save_best(best, 0.5)
    weights, step = run.weights()
    assert step == 4
    assert weights.keys() == best.average.state_dict().keys()
    assert torch.equal(weights["base.0.weight"], best.average.state_dict()["base.0.weight"])
    assert (run.describe()["step"], run.describe()["seconds"]) == (4, 7200)


def test_metrics_after_the_restored_step_are_forgotten(tmp_path: Path) -> None:
    run = TrainingRun.start(tmp_path, fake_recipe())
    run.forget_after(0)  # nothing there yet
    for step in (5, 10, 15):
        run.log({"step": step, "loss": 0.5})
    with run.metrics.open("a") as file:
        file.write('{"step": 1')  # cut short by a kill
    run.forget_after(10)
    run.log({"step": 15, "loss": 0.25})
    lines = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    assert [line["step"] for line in lines] == [5, 10, 15]
    assert lines[-1]["loss"] == 0.25


def test_metrics_of_a_young_or_killed_run(tmp_path: Path) -> None:
    run = TrainingRun.start(tmp_path, fake_recipe())
    assert run.read_metrics() == []
    run.log({"step": 5, "loss": 0.1})
    with run.metrics.open("a") as file:
        file.write('{"step": 10, "lo')
    assert run.read_metrics() == [{"step": 5, "loss": 0.1}]


def test_only_one_process_trains_in_a_folder(tmp_path: Path) -> None:
    refused = pytest.raises(FileError, match="another training run")
    with locked(tmp_path / "run"), refused, locked(tmp_path / "run"):
        pass
    with locked(tmp_path / "run"):
        pass


def test_what_a_kill_left_half_written_is_cleared(tmp_path: Path) -> None:
    for name in ("config.json", "newest.safetensors", "best.safetensors", "metrics.jsonl"):
        (tmp_path / f".{name}.x1y2.tmp").write_bytes(b"half")
    with locked(tmp_path):
        run = TrainingRun.start(tmp_path, fake_recipe())
    assert list(tmp_path.iterdir()) == [run.folder / "config.json"]


def test_so_are_lessons(tmp_path: Path) -> None:
    place = tmp_path / "lessons" / "0"
    place.mkdir(parents=True)
    whole, half = place / "000003.safetensors", place / ".000004.safetensors.x1y2.tmp"
    for file in (whole, half):
        file.write_bytes(b"lesson")
    with locked(tmp_path):
        assert list(place.iterdir()) == [whole]
