import torch

from amortes.nets.base import Hint
from amortes.nets.kernel import KernelNetwork
from amortes.nets.kernel.correction import NUM_FEATURES, SPLITS, Correction, features
from amortes.nets.kernel.hints import start
from amortes.nets.kernel.landmarks import find_landmarks
from amortes.prior.tasks import TaskBatch


def test_features_are_finite_and_of_order_one(network: KernelNetwork, task: TaskBatch) -> None:
    conditioned = network.condition(task.X, task.y).conditioned
    landmarks = find_landmarks(conditioned, network.config.landmarks)
    at = conditioned.moments(task.Xq)
    for hint in (
        Hint(x=task.optimum.x),
        Hint(f=task.optimum.f),
        Hint(task.optimum.x, task.optimum.f),
    ):
        begin = start(conditioned, task.Xq, at, hint, landmarks)
        found = features(conditioned, at, begin, hint, landmarks)
        assert found.shape == (*begin.mean.shape, NUM_FEATURES)
        assert found.dtype == torch.float64
        assert found.isfinite().all()
        assert found.abs().median() < 5


def test_where_the_hint_changes_nothing_neither_does_the_correction() -> None:
    torch.manual_seed(0)
    correction = Correction(16)
    torch.nn.init.normal_(correction.out.weight)
    inputs = torch.randn(2, 3, 4, 1, NUM_FEATURES)
    weights = torch.full((2, 3, 4, 1), 1 / 3)
    divergence = torch.tensor([0.0, 1e-4, 0.1, 10.0]).expand(2, 3, 4)[..., None]
    for part in correction(inputs, weights, divergence):
        assert part.shape == (2, 3, 4, 1, SPLITS)
        size = part.abs().amax((0, 1, 3, 4))
        assert size[0] == 0
        assert 0 < size[1] < 0.01 * size[3]


def test_without_a_hint_nothing_is_learned(network: KernelNetwork, task: TaskBatch) -> None:
    state = network.condition(task.X, task.y)
    before = network.predict(state, task.Xq)
    for parameter in network.base_parameters():
        torch.nn.init.normal_(parameter)
    after = network.predict(state, task.Xq)
    assert torch.equal(before.mean, after.mean)
    assert torch.equal(before.variance, after.variance)
