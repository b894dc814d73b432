import importlib
import subprocess
import sys

import pytest

from amortes.errors import MissingExtraError


def test_without_optuna(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "amortes.integrations.optuna", raising=False)
    monkeypatch.setitem(sys.modules, "optuna", None)  # importing it is an ImportError
    with pytest.raises(MissingExtraError, match=r"pip install amortes\[optuna\]"):
        importlib.import_module("amortes.integrations.optuna")


def test_nothing_else_imports_optuna() -> None:
    code = "import sys, amortes.optimiser, amortes.integrations; assert 'optuna' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
