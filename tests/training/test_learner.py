import dataclasses
from collections import Counter
from typing import Any

import pytest
import torch

from amortes.errors import ConfigError, FileError
from amortes.nets.base import Network
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch
from amortes.training import learner as module
from amortes.training.learner import SMOOTHING, Learner, Meter
from amortes.training.objectives import HINTS, base_loss
from amortes.training.recipes import Recipe, build_network, recipe
from tests.training.fake import fake_recipe

CPU = torch.device("cpu")


def make(recipe: Recipe, **options: Any) -> Learner:
    network = build_network(recipe.network, recipe.config, recipe.prior, recipe.seed)
    return Learner(recipe, network, CPU, **options)


def take_step(learner: Learner, task: TaskBatch) -> None:
    learner.forward(task)[0].backward()  # type: ignore[no-untyped-call]
    learner.clip()
    learner.update()


@pytest.mark.parametrize("stage", ["base", "alpha"])
def test_a_stage_trains_its_own_parameters(stage: Any, task: TaskBatch) -> None:
    learner = make(fake_recipe(stage))
    before = {name: p.clone() for name, p in learner.network.named_parameters()}
    take_step(learner, task)
    for name, parameter in learner.network.named_parameters():
        assert torch.equal(parameter, before[name]) != name.startswith(stage), name


def test_average_follows_the_weights(task: TaskBatch) -> None:
    learner = make(fake_recipe(average_decay=0.15))
    name = "base.0.weight"
    expected = learner.network.state_dict()[name].clone()
    for t in range(4):
        take_step(learner, task)
        decay = min(0.15, (1 + t) / (10 + t))
        expected = decay * expected + (1 - decay) * learner.network.state_dict()[name]
        torch.testing.assert_close(learner.average.state_dict()[name], expected)
    assert not learner.average.training
    assert learner.network.training


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_restored_learner_goes_on_exactly(kind: str, task: TaskBatch) -> None:
    recipe = fake_recipe(optimiser=kind)
    learner = make(recipe)
    for _ in range(3):
        take_step(learner, task)
    copy = make(dataclasses.replace(recipe, seed=5))  # other initial weights
    copy.recipe = recipe
    copy.load({name: t.clone() for name, t in learner.tensors().items()}, learner.step)
    for _ in range(3):
        take_step(learner, task)
        take_step(copy, task)
    assert copy.step == 6
    there = copy.tensors()
    assert there.keys() == learner.tensors().keys()
    assert all(torch.equal(there[name], t) for name, t in learner.tensors().items())


@pytest.mark.parametrize("name", ["network.base.0.weight", "optimiser.0.1.exp_avg"])
def test_state_that_does_not_fit_is_refused(name: str, task: TaskBatch) -> None:
    learner = make(fake_recipe())
    take_step(learner, task)
    tensors = learner.tensors() | {name: torch.zeros(1, 2, 3)}
    with pytest.raises(FileError, match="does not fit"):
        learner.load(tensors, 1)


def test_kernel_networks_stay_on_the_cpu() -> None:
    kernel = recipe("kernel", "base", PRIORS["paper"])
    network = build_network("kernel", kernel.config, kernel.prior)
    device = torch.device("meta")  # stands for a GPU
    with pytest.raises(ConfigError, match="cpu only, not on meta"):
        Learner(kernel, network, device)
    other = fake_recipe("alpha")
    pupil = build_network("fake", other.config, other.prior)
    assert Learner(other, pupil, device).parameters[0].device == device


def test_gradient_is_clipped(task: TaskBatch) -> None:
    learner = make(fake_recipe(clip=1e-3))
    learner.forward(task)[0].backward()  # type: ignore[no-untyped-call]
    norm = learner.clip()
    after = torch.stack([p.grad.norm() for p in learner.parameters if p.grad is not None]).norm()
    assert float(norm) > 1e-3
    assert float(after) == pytest.approx(1e-3, rel=1e-3)


def test_choices_of_a_step(monkeypatch: pytest.MonkeyPatch, task: TaskBatch) -> None:
    seen: list[dict[str, Any]] = []

    def spy(network: Network[Any], task: TaskBatch, **options: Any) -> Any:
        seen.append(options)
        return torch.zeros(()), {}

    monkeypatch.setattr(module, "base_loss", spy)

    def choices(**changes: Any) -> list[dict[str, Any]]:
        seen.clear()
        learner = make(fake_recipe(**changes))
        for step in range(300):
            learner.step = step
            learner.forward(task)
        return list(seen)

    first = choices(conditionings="one", pending_share=0.2, max_pending=3)
    assert first == choices(conditionings="one", pending_share=0.2, max_pending=3)
    assert first != choices(conditionings="one", pending_share=0.2, max_pending=3, seed=1)
    hints = Counter(options["hints"] for options in first)
    assert hints.keys() == {(name,) for name in HINTS}
    assert all(45 <= count <= 105 for count in hints.values())  # 75, sd 7.5
    pending = Counter(options.get("num_pending", 0) for options in first)
    assert pending.keys() == {0, 1, 2, 3}
    assert 205 <= pending[0] <= 275  # 240, sd 7
    assert choices(pending_share=0.0) == [{}] * 300


def test_single_point_is_never_pending(task: TaskBatch) -> None:
    one = dataclasses.replace(task, X=task.X[:, :1], y=task.y[:, :1])
    _, metrics = make(fake_recipe(pending_share=1.0)).forward(one)
    assert "excess_pending" not in metrics


def test_validation_sees_all_conditionings_and_changes_nothing(task: TaskBatch) -> None:
    learner = make(fake_recipe(conditionings="one", pending_share=1.0))
    before = {name: t.clone() for name, t in learner.tensors().items()}
    metrics = learner.validate(task)
    assert {f"excess_{name}" for name in HINTS} <= metrics.keys()
    assert not any(m.requires_grad for m in metrics.values())
    assert all(torch.equal(before[name], t) for name, t in learner.tensors().items())


def test_network_gets_the_recipes_dtype(monkeypatch: pytest.MonkeyPatch, task: TaskBatch) -> None:
    seen = []

    def spy(network: Network[Any], task: TaskBatch, **options: Any) -> Any:
        seen.append(task.X.dtype)
        return base_loss(network, task, ("none",))

    monkeypatch.setattr(module, "base_loss", spy)
    make(fake_recipe(dtype="float32")).forward(task)
    make(fake_recipe(dtype="float64")).forward(task)
    assert seen == [torch.float32, torch.float64]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's compiler warns about parts of torch
def test_compiled_step_agrees(task: TaskBatch) -> None:
    recipe = fake_recipe(pending_share=0.0)
    plain, compiled = make(recipe), make(recipe, compiled=True)
    for learner in (plain, compiled):
        take_step(learner, task)
    for name, tensor in plain.tensors().items():
        torch.testing.assert_close(compiled.tensors()[name], tensor, rtol=1e-4, atol=1e-5)


def test_means_over_the_steps_that_had_the_metric() -> None:
    meter = Meter()
    meter.add({"loss": 1.0, "a": 2.0}, 0.1)
    meter.add({"loss": 3.0}, 0.1)
    meter.add({"loss": 5.0, "a": 4.0}, 0.1)
    assert meter.flush() == {"loss": 3.0, "a": 3.0}
    assert meter.flush() == {}


def test_smoothing_is_not_biased_by_the_start() -> None:
    meter = Meter()
    meter.add({"loss": 2.0}, 0.5)
    assert meter.loss == pytest.approx(2.0)
    assert meter.seconds == pytest.approx(0.5)
    meter.add({"loss": 4.0}, 0.5)
    assert meter.loss == pytest.approx((2.0 * SMOOTHING + 4.0) / (SMOOTHING + 1.0))
