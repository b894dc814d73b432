import pytest

pytest.importorskip("sklearn")

from tests.optimiser.conftest import network

__all__ = ["network"]
