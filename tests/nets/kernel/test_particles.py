import math
from typing import Any

import pytest
import torch

from amortes.errors import ConfigError
from amortes.nets.kernel.particles import ParticleConfig, normal_points, thin
from amortes.random import generator


def test_thinning_keeps_large_weights_and_makes_the_others_equal() -> None:
    weights = torch.tensor([[0.02, 0.5, 0.06, 0.03, 0.3, 0.04, 0.05], [1 / 7] * 7]).double()
    kept, log_weights = thin(weights.log(), 4)
    # The two large ones stay; the other five, 0.2 in all, get two places of 0.1.
    assert kept[0].tolist() == sorted(set(kept[0].tolist()))
    new = dict(zip(kept[0].tolist(), log_weights[0].exp().tolist(), strict=True))
    assert new.pop(1) == pytest.approx(0.5)
    assert new.pop(4) == pytest.approx(0.3)
    assert list(new.values()) == pytest.approx([0.1, 0.1])
    assert log_weights[1].exp().tolist() == pytest.approx([0.25] * 4)


def test_thinning_survives_weights_that_are_nothing() -> None:
    log_weights = torch.tensor([[0.0, -1e4, -800.0, -2e3, -50.0, -1e4]]).double()
    for row in (log_weights, log_weights.flip(-1)):
        kept, new = thin(row, 4)
        assert float(new.exp().sum()) == pytest.approx(1.0)
        assert len(set(kept[0].tolist())) == 4
        assert float(new[row.gather(1, kept) == 0.0].exp()) == pytest.approx(1.0)


def test_thinning_has_no_bias() -> None:
    weights = torch.rand(1, 40, generator=generator(3), dtype=torch.float64)
    weights = weights.square() / weights.square().sum()
    orders = torch.rand(4000, 40, generator=generator(4)).argsort(-1)
    kept, log_weights = thin(weights[0][orders].log(), 10)
    total = torch.zeros(40, dtype=torch.float64)
    total.index_add_(0, orders.gather(1, kept).flatten(), log_weights.exp().flatten() / 4000)
    assert torch.allclose(total, weights[0], atol=0.005)


def test_normal_points_are_normal() -> None:
    points = normal_points(3, 4096)
    assert points.mean(0).abs().max() < 0.01
    assert (points.var(0) - 1).abs().max() < 0.02
    assert points.data_ptr() == normal_points(3, 4096).data_ptr()  # kept
    assert torch.equal(normal_points(3, 100), points[:100])


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("count", [0, -1]),
        ("candidates", [0]),
        ("inflation", [0.0, -1.0, math.inf, math.nan]),
        ("from_guess", [-1]),
        ("steps", [-1]),
    ],
)
def test_invalid_values_name_the_field(field: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ConfigError, match=f"^{field}: must be .* not {value}"):
            ParticleConfig(**{field: value})
