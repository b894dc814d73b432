import pytest

pytest.importorskip("ray.tune")

from tests.optimiser.conftest import network

__all__ = ["network"]
