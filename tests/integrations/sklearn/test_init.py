import importlib
import sys

import pytest

from amortes.errors import MissingExtraError


def test_without_sklearn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "amortes.integrations.sklearn", raising=False)
    monkeypatch.setitem(sys.modules, "sklearn", None)  # importing it is an ImportError
    with pytest.raises(MissingExtraError, match=r"pip install amortes\[sklearn\]"):
        importlib.import_module("amortes.integrations.sklearn")
