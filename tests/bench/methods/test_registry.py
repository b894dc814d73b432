import subprocess
import sys

import pytest
from matplotlib.colors import is_color_like

from amortes.bench.methods.registry import METHODS, method_factory
from amortes.bench.report.names import ACQUISITIONS as ACQUISITION_NAMES
from amortes.bench.report.names import MODELS
from amortes.errors import ConfigError, MissingExtraError
from amortes.optimiser.suggest import ACQUISITIONS
from tests.bench.methods.conduct import Quadratic


def test_every_name_has_a_factory_and_a_look() -> None:
    for name, entry in METHODS.items():
        if name == "hebo":
            pytest.importorskip("hebo")  # the last but two; installed by hand
        assert callable(method_factory(name))
        assert entry.label or (entry.model in MODELS and entry.acquisition in ACQUISITION_NAMES)
        assert is_color_like(entry.colour)


def test_an_unknown_name_lists_all() -> None:
    with pytest.raises(ConfigError) as error:
        method_factory("jez")
    for name in METHODS:
        assert name in str(error.value)


@pytest.mark.parametrize("name", ["random@kernel-paper", "jes@"])
def test_weights_are_for_ours(name: str) -> None:
    with pytest.raises(ConfigError, match="does not name weights"):
        method_factory(name)


@pytest.mark.parametrize(
    ("package", "name", "extras"),
    [
        ("optuna", "optuna-tpe", "bench"),
        ("botorch", "map-jes", "bench"),
        ("smac", "smac-bb", "bench,smac"),
        ("hebo", "hebo", "hebo"),
    ],
)
def test_a_missing_package_is_named(
    package: str, name: str, extras: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in list(sys.modules):
        if module.split(".")[0] == package or module.startswith("amortes.bench.methods."):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*amortes\[{extras}\]"):
        method_factory(name)


def test_botorch_has_an_acquisition_for_noise() -> None:
    factory = method_factory("botorch")
    assert factory(Quadratic(1), 0).acquisition == "logei"  # type: ignore[attr-defined]
    noisy = factory(Quadratic(1, noise_sd=0.1), 0)
    assert noisy.acquisition == "lognei"  # type: ignore[attr-defined]


def test_weights_by_name_and_by_path() -> None:
    for absent in ("no-such", "absent.safetensors"):
        with pytest.raises(ConfigError, match=f"'{absent}' is neither a file.* kernel-paper"):
            method_factory(f"jes@{absent}")(Quadratic(1), 0)


def test_names_cost_nothing() -> None:
    code = (
        "import sys; from amortes.bench.methods.registry import method_factory\n"
        f"for name in {ACQUISITIONS}: method_factory(name)\n"
        "print([m for m in ('jax', 'numpyro', 'optuna', 'smac', 'botorch', 'gpytorch') "
        "if m in sys.modules])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == "[]"
