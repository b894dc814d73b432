import builtins
from typing import Any

import pytest

from amortes.acquisition.bench import compare, draw, optimize_acqf_method
from amortes.errors import MissingExtraError
from amortes.nets.kernel import KernelNetwork

pytest.importorskip("botorch")


def test_rows(network: KernelNetwork) -> None:
    rows = compare(network, d=1, n=4, score="logei", datasets=2, seed=0)
    assert [row.method for row in rows] == ["amortes", "optimize_acqf"]
    for row in rows:
        assert (row.d, row.n, row.score, row.datasets) == (1, 4, "logei", 2)
        assert row.ms > 0
        assert 0.0 <= row.missed <= row.worst < 1.0
    assert rows[0].within_1_percent == 1.0


def test_datasets_differ_and_are_repeatable(network: KernelNetwork) -> None:
    first, second = draw(network, 2, 5, 2, seed=1)
    again, _ = draw(network, 2, 5, 2, seed=1)
    assert first.X.shape == (5, 2)
    assert not first.X.equal(second.X)
    assert first.y.equal(again.y)


def test_without_botorch(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def fails(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("botorch"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", fails)
    with pytest.raises(MissingExtraError, match=r"amortes\[botorch\]"):
        optimize_acqf_method()
