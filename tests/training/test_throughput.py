import pytest
import torch

from amortes.nets.kernel.optimum.representers import RepresenterConfig
from amortes.prior.gp import named_prior
from amortes.training import lessons
from amortes.training import throughput as module
from amortes.training.recipes import recipe
from amortes.training.throughput import bench, matmul_peak
from tests.training.fake import FakeConfig, fake_recipe


@pytest.fixture(autouse=True)
def _small_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PEAK_SIZE", 256)


@pytest.mark.parametrize("stage", ["base", "alpha"])
def test_shares_add_up(stage: str) -> None:
    chosen = fake_recipe(stage, pending_share=0.0)  # type: ignore[arg-type]
    result = bench(chosen, steps=2)
    shares = [result[f"{phase}_share"] for phase in module.PHASES]
    assert all(share > 0 for share in shares)
    assert sum(shares) == pytest.approx(1.0)
    per_second = 1e3 * chosen.tasks.batch_size / result["milliseconds_per_step"]
    assert result["datasets_per_second"] == pytest.approx(per_second)
    assert 0 < result["peak_share"] < 1


def test_operations_are_those_of_the_products() -> None:
    # What 8 more hidden units cost: 4 conditionings of 4 x 5 rows through 10 -> 8 -> 6; and
    # backward the gradients of both weights and of the hidden layer, but none of the inputs.
    narrow, wide = (
        bench(fake_recipe(pending_share=0.0, config=FakeConfig(width=width)), steps=1)
        for width in (8, 16)
    )
    rows, more = 4 * 4 * 5, 8
    forward, backward = 10 * more + more * 6, 10 * more + more * 6 + more * 6
    extra = (wide["gigaflops_per_step"] - narrow["gigaflops_per_step"]) * 1e9
    assert extra == pytest.approx(2 * rows * (forward + backward))


def test_peak_is_a_rate_of_this_machine() -> None:
    peak = matmul_peak(torch.device("cpu"))
    assert 1e9 < peak < 1e15


def test_a_step_counts_for_its_part_of_a_lesson(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = RepresenterConfig(count=16, num_global=32, per_centre=4, draws=16, optima=8)
    monkeypatch.setattr(lessons, "TEACHER", few)
    monkeypatch.setattr(module, "_seconds_of_a_lesson", lambda stream: 1000.0)
    sizes = ["tasks.batch_size=2", "tasks.max_context=4", "prior.max_dim=2", "lessons=1000"]
    chosen = recipe("kernel", "alpha", named_prior("paper"), [*sizes, "steps=4000"])
    result = bench(chosen, steps=1)
    assert 250 < result["milliseconds_per_step"] / 1e3 < 300
    assert result["data_share"] > 0.8
    per_second = 1e3 * 2 * (1 + lessons.REPLAYED) / result["milliseconds_per_step"]
    assert result["datasets_per_second"] == pytest.approx(per_second)
