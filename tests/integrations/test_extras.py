"""Each integration needs its library; nothing else does."""

import importlib
import subprocess
import sys

import pytest

from amortes.errors import MissingExtraError

LIBRARIES = {"botorch": "botorch", "optuna": "optuna", "ray": "ray.tune", "sklearn": "sklearn"}


@pytest.mark.parametrize("extra", LIBRARIES)
def test_without_the_library(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, f"amortes.integrations.{extra}", raising=False)
    monkeypatch.setitem(sys.modules, LIBRARIES[extra], None)  # importing it is an ImportError
    with pytest.raises(MissingExtraError, match=rf"pip install amortes\[{extra}\]"):
        importlib.import_module(f"amortes.integrations.{extra}")


def test_nothing_else_imports_the_libraries() -> None:
    code = "import sys, amortes.optimiser, amortes.acquisition, amortes.integrations; "
    code += f"assert not {set(LIBRARIES.values())} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
