import copy
import json
import math
import pickle
import threading
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import torch

from amortes import files
from amortes.errors import AmortesError, ConfigError, FileError
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.optimiser import AmortesWarning, Categorical, Float, Optimizer
from amortes.optimiser import optimizer as optimizer_module
from amortes.optimiser.state import FIELDS, FORMAT, VERSION, check_state, fingerprint
from amortes.prior.gp import named_prior
from amortes.training.recipes import build_network
from tests.optimiser.conftest import untrained
from tests.optimiser.test_optimizer import advance, optimizer


def test_a_fingerprint_changes_with_weights_and_prior(network: KernelNetwork) -> None:
    again, other_prior = untrained(named_prior("robust")), untrained(named_prior("paper"))
    assert fingerprint(again) == fingerprint(network)
    assert fingerprint(other_prior) != fingerprint(network)
    learner, same = (build_network("kernel", KernelConfig(), network.prior) for _ in range(2))
    assert fingerprint(same) == fingerprint(learner)
    assert fingerprint(learner) != fingerprint(network)
    with torch.no_grad():
        next(same.parameters()).flatten()[0] += 1e-3
    assert fingerprint(same) != fingerprint(learner)


def test_states_are_recognised() -> None:
    state = {"format": FORMAT, "version": VERSION, **dict.fromkeys(FIELDS)}
    state |= {"network": "a", "cost_function": False, "queue": [], "past": 0, "trials": []}
    assert check_state(state) == state
    for field in ("network", "cost_function", "queue", "past", "trials"):
        with pytest.raises(FileError, match=rf"damaged: {field} must be of type \w+, not 1\.5"):
            check_state(state | {field: 1.5})
    with pytest.raises(FileError, match="not a saved run"):
        check_state([1, 2])
    with pytest.raises(FileError, match="version 99"):
        check_state(state | {"version": 99})
    with pytest.raises(FileError, match="version True"):
        check_state(state | {"version": True})
    del state["trials"]
    with pytest.raises(FileError, match="missing fields trials"):
        check_state(state)


def test_saving_and_loading_changes_nothing(network: KernelNetwork, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    straight, stopped = optimizer(network, seed=3), optimizer(network, seed=3)
    for k in range(3):
        advance(straight, 2)
        advance(stopped, 2)
        pending, same = straight.ask(), stopped.ask()
        stopped.save(path)
        stopped = Optimizer.load(path, network=network)
        assert stopped.state == straight.state
        if k == 1:
            straight.tell(pending, failed=True, reason="out of memory")
            stopped.tell(same, failed=True, reason="out of memory")
    assert advance(stopped, 2) == advance(straight, 2)
    assert stopped.recommend() == straight.recommend()
    assert stopped.importance() == straight.importance()
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_the_state_is_json(network: KernelNetwork) -> None:
    opt = optimizer(network, start=[{"lr": 0.01, "layers": 2, "act": "relu"}])
    advance(opt, 2)
    opt.tell(opt.ask(), math.nan)
    state = opt.state
    again = Optimizer.from_state(json.loads(json.dumps(state, allow_nan=False)), network=network)
    assert again.state == state
    assert again.trials == opt.trials


def test_another_network_is_said(network: KernelNetwork) -> None:
    state = optimizer(network).state
    with pytest.warns(AmortesWarning, match="another network"):
        Optimizer.from_state(state, network=untrained(named_prior("paper")))


def test_damaged_files_are_named(network: KernelNetwork, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    state = optimizer(network).state
    parts: list[dict[str, Any]] = [{"trials": [{"x": 1}]}, {"past": 3}, {"queue": [{"z": 1}]}]
    damaged = [json.dumps(state | part) for part in parts]
    for text in ("{", "[]", "[" * 100_000, '{"a": 1' + "0" * 5000 + "}", *damaged):
        path.write_text(text)
        with pytest.raises(FileError, match=r"run\.json"):
            Optimizer.load(path, network=network)


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ({"space": "x"}, "expected an object with `parameters`, .* not 'x'"),
        ({"space": {"parameters": [[]]}}, "space: not the description"),
        ({"space": {"parameters": {"x": "y"}}}, "x: expected the fields of a parameter, not 'y'"),
        ({"space": {"parameters": {"x": {"type": ["float"]}}}}, "x: type must be"),
        ({"goal": ["minimize"]}, "goal: must be"),
        ({"acquisition": {}}, "acquisition: must be"),
        ({"seed": 1.5}, "seed: must be an int"),
        ({"past": 0.0}, "past must be of type int"),
    ],
)
def test_what_is_damaged_is_named(
    network: KernelNetwork, tmp_path: Path, part: dict[str, Any], says: str
) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(optimizer(network).state | part))
    with pytest.raises(AmortesError, match=rf"run\.json: .*{says}"):
        Optimizer.load(path, network=network)


@pytest.mark.parametrize("place", [".", "file/run.json", "a\0b"])
def test_paths_that_are_no_files(network: KernelNetwork, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / place
    with pytest.raises(FileError, match=r"cannot write"):
        optimizer(network).save(path)
    with pytest.raises(FileError, match=r"cannot read"):
        Optimizer.load(path, network=network)


def test_a_reason_can_be_saved(network: KernelNetwork, tmp_path: Path) -> None:
    opt = optimizer(network)
    opt.tell(opt.ask(), failed=True, reason=ZeroDivisionError("division by zero"))
    opt.save(tmp_path / "run.json")
    (trial,) = Optimizer.load(tmp_path / "run.json", network=network).trials
    assert trial.reason == "ZeroDivisionError: division by zero"


def test_copies_go_on_alike(network: KernelNetwork) -> None:
    opt = optimizer(network)
    advance(opt, 5)
    opt.tell(opt.ask(), failed=True)
    opt.ask()
    for other in (copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))):
        assert other.state == opt.state
        assert other.recommend() == opt.recommend()


def test_a_thread_never_overwrites_a_newer_file(
    network: KernelNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt, path = optimizer(network), tmp_path / "run.json"
    writing, told = threading.Event(), threading.Event()
    write = files.write_json

    def slow(target: Any, value: Any) -> None:
        writing.set()
        told.wait(0.5)  # what is told now comes too late for this file
        write(target, value)

    monkeypatch.setattr(optimizer_module, "write_json", slow)
    first = threading.Thread(target=opt.save, args=(path,))
    first.start()
    writing.wait()
    monkeypatch.setattr(optimizer_module, "write_json", write)
    opt.tell({"lr": 1e-3, "layers": 2, "act": "relu"}, 1.0)
    opt.save(path)
    told.set()
    first.join()
    assert len(Optimizer.load(path, network=network).trials) == 1


class Kernel(Enum):
    RBF = "rbf"
    LINEAR = "linear"


def test_choices_that_are_not_json(network: KernelNetwork, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    space: dict[str, Any] = {
        "kernel": Categorical(Kernel),
        "shape": Categorical([(1, 2), (3,), None]),
        "x": Float(0, 1),
    }

    def value(config: dict[str, Any]) -> float:
        bonus = 0.5 if config["kernel"] is Kernel.RBF else 0.0
        return float(config["x"]) + bonus + len(config["shape"] or ())

    opt = Optimizer(space, network=network, start=[{"kernel": Kernel.RBF, "shape": (3,), "x": 1}])
    for _ in range(6):
        trial = opt.ask()
        opt.tell(trial, value(trial.config))
    opt.ask()
    opt.save(path)
    again = Optimizer.load(path, space=space, network=network)
    assert again.trials == opt.trials
    assert again.state == opt.state == json.loads(path.read_text())
    assert again.ask() == opt.ask()
    with pytest.raises(ConfigError, match=r"kernel: JSON cannot express its choices.*space=space"):
        Optimizer.load(path, network=network)
    other = space | {"shape": Categorical([(1, 2), None, (3,)])}
    with pytest.raises(ConfigError, match="space: the saved run has"):
        Optimizer.load(path, space=other, network=network)


def test_objects_are_not_copied(network: KernelNetwork) -> None:
    class Model:
        def __deepcopy__(self, memo: Any) -> Any:
            raise AssertionError("copied")

    models = [Model(), Model(), Model()]
    opt = Optimizer({"model": Categorical(models), "x": Float(0, 1)}, network=network)
    for _ in range(5):
        trial = opt.ask()
        assert trial.config["model"] in models
        opt.tell(trial, trial.config["x"])
    assert opt.recommend().config["model"] in models
    assert all(isinstance(row["config"]["model"], int) for row in opt.state["trials"])
