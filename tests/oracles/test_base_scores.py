import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from amortes.errors import ConfigError
from amortes.nets.base import Hint
from amortes.nets.distributions import GaussianMixture
from amortes.oracles import base_scores as module
from amortes.oracles.base_scores import (
    ReferenceCell,
    average,
    base_score,
    belongs,
    evaluation_task,
    fair_mean,
    fingerprint,
    grid,
    quiet,
    reference_cell,
    references,
)
from amortes.oracles.smc import SMCConfig
from amortes.oracles.store import rounded
from amortes.prior.gp import PRIORS, GPPrior, Marginal, named_prior
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream
from amortes.training.distributed import take_rows
from tests.oracles.fake import SDS, KnownNetwork

PRIOR = GPPrior(name="unshipped", max_dim=2)
CELLS = [(1, 3), (2, 4)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DATASETS", 3)
    config = SMCConfig(particles=256, final_particles=512)
    monkeypatch.setattr(module, "smc_config", lambda n: config)


def test_grid_keeps_to_the_prior() -> None:
    assert len(grid(named_prior("robust"))) == 20
    assert {d for d, _ in grid(named_prior("paper"))} == {1, 2, 4, 6}
    assert grid(GPPrior(min_dim=2, max_dim=2)) == [(2, 5), (2, 20), (2, 45), (2, 100)]


@pytest.mark.usefixtures("small")
def test_stored_numbers_are_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    computed = references(PRIOR, CELLS, tmp_path, seen.append)
    assert seen == CELLS
    monkeypatch.setattr(module, "hyper_posterior", None)  # would fail if called
    stored = references(PRIOR, CELLS, tmp_path)
    for cell in CELLS:
        assert torch.allclose(stored[cell].cross_entropy, computed[cell].cross_entropy, atol=1e-4)
        assert torch.equal(stored[cell].task.X, computed[cell].task.X)
    with pytest.raises(ConfigError, match="d=3"):
        references(PRIOR, [(3, 5)], tmp_path)


@pytest.mark.usefixtures("small")
def test_numbers_of_other_tasks_are_not_used(tmp_path: Path) -> None:
    before = references(PRIOR, CELLS[:1], tmp_path)[CELLS[0]]
    (path,) = tmp_path.iterdir()
    path.write_text(path.read_text().replace('"mean_y": [', '"mean_y": [9'))
    again = references(PRIOR, CELLS[:1], tmp_path)[CELLS[0]]
    assert torch.equal(again.cross_entropy, before.cross_entropy)  # the same seed, computed anew
    assert "[9" not in path.read_text()


@pytest.mark.usefixtures("small")
def test_only_as_many_datasets_as_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(references(PRIOR, CELLS[:1], tmp_path, datasets=2)[1, 3].cross_entropy) == 2
    three = references(PRIOR, CELLS[:1], tmp_path)[1, 3].cross_entropy
    monkeypatch.setattr(module, "hyper_posterior", None)  # would fail if called
    two = references(PRIOR, CELLS[:1], tmp_path, datasets=2)[1, 3]
    assert torch.allclose(two.cross_entropy, three[:2], atol=1e-4)
    assert len(two.task.X) == 2


@pytest.mark.usefixtures("small")
def test_quiet_priors_are_judged_on_exact_draws_and_their_gains_on_paths(tmp_path: Path) -> None:
    assert [name for name in PRIORS if quiet(named_prior(name), 1)] == ["real"]
    prior = GPPrior(name="quiet", max_dim=1, noise_sd=Marginal.lognormal(-9.0, 1.0))
    reference = references(prior, [(1, 4)], tmp_path)[1, 4]
    assert reference.paths is not None
    assert reference.task.fq.isnan().all()
    network = KnownNetwork(lambda Xq: Xq)
    score = base_score("known", network, (1, 4), reference, 3)
    zero = torch.zeros(3, dtype=torch.float64)
    q = network.predict(network.condition(reference.task.X, reference.task.y), reference.task.Xq)
    variance = reference.task.posterior_variance + reference.task.noise_variance
    exact = q.cross_entropy(reference.task.posterior_mean, variance).mean(1)
    assert score["excess"] == pytest.approx((exact - reference.cross_entropy).mean().item())
    again = base_score("known", network, (1, 4), ReferenceCell(reference.paths, zero), 3)
    for gain in ("gain_x", "gain_f", "gain_both"):
        assert math.isfinite(score[gain])
        assert score[gain] == again[gain]


@pytest.mark.usefixtures("small")
def test_fingerprints_tell_tasks_apart() -> None:
    one, two = (evaluation_task(PRIOR, cell) for cell in ((1, 3), (1, 4)))

    def entry(task: Any) -> dict[str, Any]:
        return {name: rounded(column.tolist()) for name, column in fingerprint(task).items()}

    assert belongs(one, entry(one))
    assert not belongs(one, entry(two))
    assert not belongs(one, entry(take_rows(one, slice(2))))


@pytest.mark.usefixtures("small")
def test_reference_lies_between_the_truth_and_the_prior() -> None:
    """Knowing the hyperparameters is better on average, knowing nothing is worse."""
    cell = reference_cell(PRIOR, (1, 8))
    truth = fingerprint(cell.task)["entropy"]
    task = cell.task
    variance = task.posterior_variance + task.noise_variance
    blind = 1.25 + 0.02  # prior variance of y: output, mean, noise
    gaussian = 0.5 * (torch.log(torch.tensor(2 * torch.pi * blind)))
    gaussian = gaussian + 0.5 * (variance + task.posterior_mean.square()) / blind
    assert truth.mean() < cell.cross_entropy.mean() < fair_mean(gaussian, task).mean()


def test_only_fair_queries_count() -> None:
    task = evaluation_task(named_prior("paper"), (2, 5))
    values = task.near_optimum.double()
    assert values.sum() > 0
    assert fair_mean(values, task).abs().max().item() == 0.0
    assert torch.allclose(fair_mean(torch.ones_like(values), task), torch.ones(32).double())


@pytest.mark.parametrize("name", ["paper", "robust"])
def test_shipped_numbers_agree_with_a_fresh_computation(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior = named_prior(name)
    fresh = reference_cell(prior, (1, 5), datasets=6).cross_entropy
    monkeypatch.setattr(module, "hyper_posterior", None)  # shipped: nothing is computed
    shipped = references(prior, [(1, 5), (1, 100), (4, 20)], tmp_path)
    difference = shipped[1, 5].cross_entropy[:6] - fresh
    assert difference.abs().max().item() < 0.05
    assert difference.mean().abs().item() < 0.02


@pytest.mark.parametrize("name", ["paper", "robust"])
def test_all_cells_of_named_priors_are_shipped(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "hyper_posterior", None)
    prior = named_prior(name)
    assert len(references(prior, grid(prior), tmp_path)) == len(grid(prior))


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
    assert (score["network"], score["d"], score["n"]) == ("exact", 2, 6)
    assert score["excess"] == pytest.approx(-0.25, abs=1e-6)
    assert score["error"] == pytest.approx(torch.tensor([0.1, 0.2, 0.3, 0.4]).std().item() / 2)
    assert score["cover_50"] == pytest.approx(0.5, abs=1e-6)
    assert score["cover_90"] == pytest.approx(0.9, abs=1e-6)
    assert score["gain_x"] == score["gain_f"] == score["gain_both"] == 0.0


def test_a_stretched_truth_has_known_scores(task: TaskBatch) -> None:
    variance = task.posterior_variance + task.noise_variance
    entropy = fair_mean(0.5 * (2 * math.pi * math.e * variance).log(), task)
    score = base_score("wide", Exact(task, 2.0), (2, 6), ReferenceCell(task, entropy), 4)
    assert score["excess"] == pytest.approx(math.log(2.0) - 0.5 * (1 - 0.25), abs=1e-6)
    assert score["cover_50"] == pytest.approx(math.erf(2 * 0.67448975 / math.sqrt(2)), abs=1e-6)
    assert score["cover_90"] == pytest.approx(math.erf(2 * 1.64485363 / math.sqrt(2)), abs=1e-6)


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
    assert score["gain_x"] == pytest.approx(blind - cross_entropy(True, False))
    assert score["gain_f"] == pytest.approx(blind - cross_entropy(False, True))
    assert score["gain_both"] == pytest.approx(blind - cross_entropy(True, True))


def test_averages(task: TaskBatch) -> None:
    reference = ReferenceCell(task, torch.zeros(4, dtype=torch.float64))
    network = KnownNetwork(lambda Xq: Xq)
    cells = [(2, 5), (4, 20), (12, 5)]
    scores = [base_score("known", network, cell, reference, 4) for cell in cells]
    easy, everything = average(scores)
    assert (easy["d"], easy["n"], everything["d"], everything["n"]) == ("<=6", "<=45", "all", "all")
    assert everything["excess"] == pytest.approx(scores[0]["excess"])
    assert easy["error"] == pytest.approx(scores[0]["error"] / math.sqrt(2))
    assert len(average(scores[:2])) == 1
