from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from amortes.nets.base import GAINS, Hint
from amortes.nets.distributions.overlap import overlap_entropy
from amortes.nets.kernel import KernelConfig, KernelNetwork, hints, sketch
from amortes.nets.kernel.landmarks import find_landmarks
from amortes.nets.kernel.sketch import LOSSES, Sketch, Terms
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream


@dataclass
class Case:
    """A sketch of a task, and queries."""

    sketch: Sketch
    Xq: Tensor

    @classmethod
    def of(cls, network: KernelNetwork, task: TaskBatch) -> "Case":
        conditioned = network.condition(task.X, task.y).conditioned
        landmarks = find_landmarks(conditioned, network.config.landmarks)
        return cls(Sketch(conditioned, landmarks, landmarks.optima), task.Xq)

    def terms(self, gain: str) -> Terms:
        return self.sketch.terms(gain, self.Xq)


@pytest.mark.parametrize("name", ["robust", "real"])
@pytest.mark.parametrize("d", [2, 4])
def test_terms_are_those_of_predictions_with_the_drawn_optima(
    d: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sketch, "RIVALS", 64)  # all landmarks, as in predictions
    network = KernelNetwork(KernelConfig(encoder=None), PRIORS[name]).eval()
    task = TaskStream(PRIORS[name], 7, TaskConfig(batch_size=3, num_queries=9)).batch_of(0, d, 8)
    case = Case.of(network, task)
    found = {name: case.terms(name) for name in GAINS}
    one_place = hints.KnownValues.of
    monkeypatch.setattr(
        hints.KnownValues, "of", classmethod(lambda _, marks, f: one_place(marks, f, places=1))
    )
    state = network.condition(task.X, task.y)

    def entropy(hint: Hint | None) -> tuple[Tensor, Tensor, Tensor]:
        q = network.predict(state, task.Xq, hint)
        parts = (q.weights, q.means, q.sds.square())
        return overlap_entropy(*(p.movedim(-1, 1) for p in parts)), q.mean, q.variance

    before, mean, variance = entropy(None)
    for s in (0, 7, 15):
        x, f = case.sketch.optima.x[:, s], case.sketch.optima.f[:, s]
        for name, hint in zip(GAINS, (Hint(x=x), Hint(f=f), Hint(x, f)), strict=True):
            after, mean_after, _ = entropy(hint)
            taken = before - after
            shift = (mean_after - mean) / variance.sqrt()
            assert torch.allclose(found[name].gain[:, :, s], taken, atol=1e-9)
            assert torch.allclose(found[name].shift[:, :, s], shift, atol=1e-9)


def test_shapes_and_signs(network: KernelNetwork, task: TaskBatch) -> None:
    case = Case.of(network, task)
    means = {}
    for name in GAINS:
        found = case.terms(name)
        assert found.gain.shape == found.shift.shape == (3, 9, network.config.landmarks.optima)
        assert found.gain.dtype == torch.float64
        assert found.gain.isfinite().all()
        losses = found.gain.clamp_max(0.0)
        expected = found.gain.mean(2) - (1.0 - LOSSES) * losses.mean(2)
        assert torch.allclose(found.mean_gain, expected)
        means[name] = float(found.mean_gain.mean())
    assert means["jes"] > means["mes"] > 0
    assert means["jes"] > means["pes"] > 0


def test_only_what_is_asked_for_is_conditioned_on(network: KernelNetwork, task: TaskBatch) -> None:
    state = network.condition(task.X, task.y)
    alone = network.gain(state, task.Xq, ("mes",)).mean
    assert state.sketch is not None
    assert list(state.sketch._given) == ["mes"]
    assert torch.allclose(alone, network.gain(state, task.Xq).mean[..., 1:2], rtol=1e-12)
