from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from amortes.nets.base import GAINS, Hint
from amortes.nets.kernel import KernelNetwork, hints, sketch
from amortes.nets.kernel.conditioning import Conditioned, Moments
from amortes.nets.kernel.landmarks import Landmarks, find_landmarks, fresh_optima
from amortes.nets.kernel.sketch import (
    LOSSES,
    Sketch,
    Terms,
    gains_of_draws,
    make_sketch,
    terms,
)
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream


@dataclass
class Case:
    """A sketch of a task, and what its functions need."""

    conditioned: Conditioned
    landmarks: Landmarks
    sketch: Sketch
    at: Moments
    cross: Tensor

    @classmethod
    def of(cls, network: KernelNetwork, task: TaskBatch) -> "Case":
        conditioned = network.condition(task.X, task.y).conditioned
        landmarks = find_landmarks(conditioned, network.config.landmarks)
        made = make_sketch(conditioned, landmarks, landmarks.optima)
        at = conditioned.moments(task.Xq)
        cross = conditioned.covariance(task.Xq, at, landmarks.X, landmarks.moments)
        return cls(conditioned, landmarks, made, at, cross)

    def terms(self, Xq: Tensor) -> Terms:
        return terms(self.sketch, self.conditioned, Xq, self.at, self.cross)

    def gains(self, Xq: Tensor) -> Tensor:
        return gains_of_draws(self.sketch, self.conditioned, Xq, self.at, self.cross)


@pytest.mark.parametrize("d", [2, 4])
def test_terms_are_those_of_predictions_with_the_drawn_optima(
    network: KernelNetwork, d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sketch, "RIVALS", 64)  # all landmarks, as in predictions
    task = TaskStream(PRIORS["robust"], 7, TaskConfig(batch_size=3, num_queries=9)).batch_of(
        0, d, 8
    )
    case = Case.of(network, task)
    found, entropies = case.terms(task.Xq), case.gains(task.Xq)
    one_place = hints.KnownValues.of
    monkeypatch.setattr(
        hints.KnownValues, "of", classmethod(lambda _, marks, f: one_place(marks, f, places=1))
    )
    state = network.condition(task.X, task.y)
    before = network.teach(state, task.Xq)
    for s in (0, 7, 15):
        x, f = case.sketch.optima.x[:, s], case.sketch.optima.f[:, s]
        for i, hint in enumerate((Hint(x=x), Hint(f=f), Hint(x, f))):
            after = network.teach(state, task.Xq, hint)
            gain = 0.5 * (before.variance / after.variance).log()
            shift = (after.mean - before.mean) / before.variance.sqrt()
            assert torch.allclose(found.gain[:, :, s, i], gain, atol=1e-9)
            assert torch.allclose(found.shift[:, :, s, i], shift, atol=1e-9)
            taken = before.entropy() - after.entropy()
            taken = torch.where(taken < 0, LOSSES * taken, taken)
            assert torch.allclose(entropies[:, :, s, i], taken, atol=2e-3)


def test_shapes_and_signs(network: KernelNetwork, task: TaskBatch) -> None:
    found = Case.of(network, task).terms(task.Xq)
    draws = network.config.landmarks.optima
    assert found.gain.shape == found.shift.shape == (3, 9, draws, len(GAINS))
    assert found.gain.dtype == torch.float64
    assert found.gain.isfinite().all()
    assert (found.mean_gain >= 0).all()
    assert found.mean_gain[..., 2].mean() > found.mean_gain[..., 1].mean()


def test_imagined_gains_are_of_other_draws(network: KernelNetwork, task: TaskBatch) -> None:
    case = Case.of(network, task)
    others = fresh_optima(case.conditioned, case.landmarks)
    assert others.x.shape == case.landmarks.optima.x.shape
    distance = (others.f[:, :, None] - case.landmarks.optima.f[:, None]).abs()
    assert distance.amin((1, 2)).min() > 1e-9
    # Of the same distribution, however.
    assert torch.allclose(others.f.mean(1), case.landmarks.optima.f.mean(1), atol=0.3)
    imagined = network.imagined_gains(network.condition(task.X, task.y), task.Xq)
    assert imagined.shape == (3, 9, 16, 3)
    assert imagined.dtype == task.Xq.dtype
    assert imagined.mean() > 0
