import importlib
import sys

import pytest

from amortes.errors import MissingExtraError


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "amortes.integrations.ray", raising=False)
    monkeypatch.setitem(sys.modules, "ray.tune", None)  # importing it is an ImportError
    with pytest.raises(MissingExtraError, match=r"pip install amortes\[ray\]"):
        importlib.import_module("amortes.integrations.ray")
