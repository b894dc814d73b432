import pytest
import torch

from amortes.bench.maximisers.comparison import (
    compare,
    draw_paths,
    missed_targets,
    reference_values,
)
from amortes.bench.maximisers.ensemble import Ensemble, values_at
from amortes.bench.maximisers.first_order import FirstOrderConfig
from amortes.errors import ConfigError
from amortes.prior import newton
from amortes.prior.gp import named_prior

PAPER = named_prior("paper")
POOR = Ensemble(
    members=(
        FirstOrderConfig(
            adam=True,
            init_lr=0.01,
            resample_init=False,
            num_samples=5,
            n_iterations_max=2,
            num_repeats=1,
            max_decays=1,
            tol=0.1,
            decay_factor=0.5,
            clamp=True,
            patience=1,
        ),
    )
)
ROW = {"d": 4, "ms_per_path": 4.0, "solved": 0.99}


def test_paths_are_a_function_of_the_seed_and_grow() -> None:
    few, many = (draw_paths(PAPER, 3, count, seed=1) for count in (4, 9))
    assert many.d == 3
    assert many.dtype == torch.float32
    assert torch.equal(few.frequencies, many.frequencies[:4])
    assert torch.equal(few.mean, many.mean[:4])
    assert not torch.equal(draw_paths(PAPER, 3, 4, seed=2).phases, few.phases)
    with pytest.raises(ConfigError, match="d=7"):
        draw_paths(PAPER, 7, 4, seed=1)


def test_hyperparameters_and_features_are_drawn_independently() -> None:
    paths = draw_paths(PAPER, 1, 600, seed=0)
    mean_size = paths.frequencies.abs().mean((1, 2))  # falls with the lengthscale
    z = paths.frequencies[:, :, 0] / mean_size[:, None]
    table = torch.cat([mean_size.log()[None], paths.mean[None], z[:, :20].T])
    correlation = torch.corrcoef(table)[:2, 2:]
    assert correlation.abs().max() < 0.17  # four standard errors; a shared seed gives 0.7


def test_reference_is_the_maximum_on_a_fine_grid() -> None:
    paths = draw_paths(PAPER, 1, 13, seed=0)
    reference = torch.cat(list(reference_values(paths, budget=3)))
    grid = torch.linspace(0, 1, 4001, dtype=torch.float64)[None, :, None].expand(13, -1, -1)
    on_grid = paths.to(torch.float64)(grid).amax(1)
    assert reference.dtype == torch.float64
    assert (reference >= on_grid - 1e-6).all()  # the search is in float32
    torch.testing.assert_close(reference, on_grid, rtol=0, atol=1e-3)


def test_both_methods_on_the_same_paths() -> None:
    paths = draw_paths(PAPER, 2, 12, seed=0)
    reference = torch.cat(list(reference_values(paths, budget=4)))
    threads = torch.get_num_threads()
    rows = compare(paths, reference, ensemble=POOR, ensemble_paths=5, seed=0)
    assert torch.get_num_threads() == threads
    assert [(row["d"], row["method"], row["paths"]) for row in rows] == [
        (2, "newton", 12),
        (2, "newton", 5),
        (2, "ensemble", 5),
    ]
    for row in rows[:2]:
        assert row["solved"] == 1.0
        assert 0 <= row["mean_regret"] <= row["max_regret"] <= 1e-5
    poor = rows[2]
    assert poor["solved"] < 1.0
    assert poor["max_regret"] > 1e-3
    assert all(row["ms_per_path"] > 0 for row in rows)
    equal = compare(paths, reference, ensemble=POOR, ensemble_paths=12, seed=0)
    assert [row["paths"] for row in equal] == [12, 12]
    alone = compare(paths, reference, ensemble=POOR, ensemble_paths=0, seed=0)
    assert [row["method"] for row in alone] == ["newton"]


def test_regret_is_measured_from_the_best_known_value() -> None:
    paths = draw_paths(PAPER, 2, 8, seed=0)
    found = values_at(paths, newton.maximise_paths(paths).x)
    above = found.clone()
    above[:3] += torch.tensor([0.5, 0.9e-5, 1.1e-5], dtype=torch.float64)
    (row,) = compare(paths, above, ensemble=POOR, ensemble_paths=0, seed=0)
    assert row["max_regret"] == pytest.approx(0.5)
    assert row["mean_regret"] == pytest.approx((0.5 + 2e-5) / 8)
    assert row["solved"] == 6 / 8
    (row,) = compare(paths, found - 1.0, ensemble=POOR, ensemble_paths=0, seed=0)
    assert row["max_regret"] == 0.0


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 0),
        ({"ms_per_path": 4.1}, 1),
        ({"solved": 0.98}, 1),
        ({"ms_per_path": 4.1, "solved": 0.98}, 2),
        ({"d": 16, "ms_per_path": 12.0, "solved": 0.95}, 0),
        ({"d": 7, "ms_per_path": 12.1, "solved": 0.94}, 2),
    ],
)
def test_targets(changes: dict[str, float], count: int) -> None:
    row = ROW | changes
    missed = missed_targets(row)
    assert len(missed) == count
    assert all(f"d={row['d']}" in line for line in missed)
