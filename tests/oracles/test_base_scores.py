import math

import pytest
import torch
from torch import Tensor

from amortes.nets.base import Hint
from amortes.nets.distributions import GaussianMixture
from amortes.oracles.base_scores import average, base_score
from amortes.oracles.reference import ReferenceCell, fair_mean
from amortes.prior.gp import GPPrior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from tests.oracles.fake import SDS, KnownNetwork


@pytest.fixture(scope="module")
def task() -> TaskBatch:
    return TaskStream(GPPrior(), 1, TaskConfig(batch_size=4, num_queries=20)).batch_of(0, 2, 6)


class Exact(KnownNetwork):
    """Knows the true hyperparameters of one task, stretched by a factor."""

    def __init__(self, task: TaskBatch, stretch: float = 1.0) -> None:
        super().__init__(lambda Xq: Xq)
        self.task, self.stretch = task, stretch

    def predict(self, state: Tensor, Xq: Tensor, hint: Hint | None = None) -> GaussianMixture:
        assert torch.equal(Xq, self.task.Xq)
        sd = self.stretch * (self.task.posterior_variance + self.task.noise_variance).sqrt()
        zero = torch.zeros_like(sd)[..., None]
        return GaussianMixture(zero, self.task.posterior_mean[..., None], sd[..., None])


def test_the_truth_is_calibrated_and_scores_its_entropy(task: TaskBatch) -> None:
    variance = task.posterior_variance + task.noise_variance
    entropy = fair_mean(0.5 * (2 * math.pi * math.e * variance).log(), task)
    reference = ReferenceCell(task, entropy + torch.tensor([0.1, 0.2, 0.3, 0.4]))
    score = base_score("exact", Exact(task), (2, 6), reference, 4)
    assert (score.network, score.d, score.n) == ("exact", 2, 6)
    assert score.excess == pytest.approx(-0.25, abs=1e-6)
    assert score.error == pytest.approx(torch.tensor([0.1, 0.2, 0.3, 0.4]).std().item() / 2)
    assert score.cover_50 == pytest.approx(0.5, abs=1e-6)
    assert score.cover_90 == pytest.approx(0.9, abs=1e-6)
    assert score.gain_x == score.gain_f == score.gain_both == 0.0


def test_a_stretched_truth_has_known_scores(task: TaskBatch) -> None:
    variance = task.posterior_variance + task.noise_variance
    entropy = fair_mean(0.5 * (2 * math.pi * math.e * variance).log(), task)
    score = base_score("wide", Exact(task, 2.0), (2, 6), ReferenceCell(task, entropy), 4)
    assert score.excess == pytest.approx(math.log(2.0) - 0.5 * (1 - 0.25), abs=1e-6)
    assert score.cover_50 == pytest.approx(math.erf(2 * 0.67448975 / math.sqrt(2)), abs=1e-6)
    assert score.cover_90 == pytest.approx(math.erf(2 * 1.64485363 / math.sqrt(2)), abs=1e-6)


def test_hints_are_scored_against_the_function(task: TaskBatch) -> None:
    network = KnownNetwork(lambda Xq: Xq)
    reference = ReferenceCell(task, torch.zeros(4, dtype=torch.float64))
    score = base_score("known", network, (2, 6), reference, 3)
    miss = (task.fq - task.y.mean(1, keepdim=True)).square() + task.noise_variance

    def cross_entropy(*told: bool) -> float:
        sd = SDS[told[0], told[1]]
        value = 0.5 * math.log(2 * math.pi * sd**2) + 0.5 * miss / sd**2
        return fair_mean(value, task)[:3].mean().item()

    blind = cross_entropy(False, False)
    assert score.gain_x == pytest.approx(blind - cross_entropy(True, False))
    assert score.gain_f == pytest.approx(blind - cross_entropy(False, True))
    assert score.gain_both == pytest.approx(blind - cross_entropy(True, True))


def test_averages(task: TaskBatch) -> None:
    reference = ReferenceCell(task, torch.zeros(4, dtype=torch.float64))
    network = KnownNetwork(lambda Xq: Xq)
    cells = [(2, 5), (4, 20), (12, 5)]
    scores = [base_score("known", network, cell, reference, 4) for cell in cells]
    easy, everything = average(scores)
    assert (easy.d, easy.n, everything.d, everything.n) == ("<=6", "<=45", "all", "all")
    assert everything.excess == pytest.approx(scores[0].excess)
    assert easy.error == pytest.approx(scores[0].error / math.sqrt(2))
    assert len(average(scores[:2])) == 1
