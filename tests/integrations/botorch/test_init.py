import importlib
import subprocess
import sys

import pytest

from amortes.errors import MissingExtraError


def test_without_botorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "amortes.integrations.botorch", raising=False)
    monkeypatch.setitem(sys.modules, "botorch", None)  # importing it is an ImportError
    with pytest.raises(MissingExtraError, match=r"pip install amortes\[botorch\]"):
        importlib.import_module("amortes.integrations.botorch")


def test_nothing_else_imports_botorch() -> None:
    code = (
        "import sys, amortes.acquisition, amortes.integrations; assert 'botorch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
