from pathlib import Path

import numpy as np
import pytest
import torch

from amortes.bench.problems.data import Pool, Source
from amortes.bench.problems.hpob import NAMES, make_hpob
from amortes.errors import DataError
from tests.bench.problems.conftest import POOL


def check(problem: Pool) -> None:
    assert (problem.d, problem.noise_sd, problem.name) == (2, 0.0, "hpob-5971-43")
    assert problem.best == pytest.approx(0.9)
    expected = torch.from_numpy(POOL[[0, 1, 3]]).double()  # the order of the table, equals once
    assert torch.equal(problem.pool, expected)
    X = torch.from_numpy(POOL).double()
    values = problem.value(torch.cat([X, X.abs()]))
    torch.testing.assert_close(
        values, torch.tensor([0.7, 0.9, 0.7, 0.6] * 2).double(), atol=1e-7, rtol=0
    )


def test_a_pool_from_a_folder(folder: Path) -> None:
    check(make_hpob("hpob-5971-43"))


def test_a_pool_from_the_package(package: Path) -> None:
    check(make_hpob("hpob-5971-43"))


def test_other_points_are_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="not one of its pool"):
        make_hpob("hpob-5971-43").value(torch.tensor([[0.5, 0.26]], dtype=torch.float64))


def test_the_real_tables(real_data: Source) -> None:
    assert len(NAMES) == 32
    problem = make_hpob("hpob-7609-9967")
    assert problem.pool.shape == (1293, 9)
    assert problem.best == 1.0
    assert ((problem.pool >= 0) & (problem.pool <= 1)).all()
    values = problem.value(problem.pool)
    assert values.shape == (1293,)
    assert int((values == 1.0).sum()) == 590
    assert np.isclose(float(values.min()), 0.653272, atol=1e-6)
