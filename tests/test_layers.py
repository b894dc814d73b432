"""Imports go one way: a package uses only those named before it in CONTRIBUTING.md."""

import ast
from pathlib import Path

import pytest

import amortes

ROOT = Path(amortes.__file__).parent
LAYERS = (
    *("prior", "corpora", "nets", "training", "oracles", "pretrained", "acquisition", "optimiser"),
    *("integrations", "command", "lab", "bench", "cli"),
)


def imported(module: Path) -> set[str]:
    """The packages of ours that a module imports, at its top or in a function."""
    tree = ast.walk(ast.parse(module.read_text(encoding="utf-8")))
    names = [node.module for node in tree if isinstance(node, ast.ImportFrom) and node.module]
    return {name.split(".")[1] for name in names if name.startswith("amortes.")} & set(LAYERS)


@pytest.mark.parametrize("package", LAYERS)
def test_a_package_imports_only_from_those_before_it(package: str) -> None:
    later = set(LAYERS[LAYERS.index(package) + 1 :])
    wrong = {
        str(module.relative_to(ROOT)): sorted(found)
        for module in sorted((ROOT / package).rglob("*.py"))
        if (found := imported(module) & later)
    }
    assert not wrong


def test_what_all_packages_share_imports_none_of_them() -> None:
    shared = [path for path in ROOT.glob("*.py") if path.name not in ("__init__.py", "__main__.py")]
    assert shared
    assert not {path.name for path in shared if imported(path)}


def test_every_package_has_its_place() -> None:
    assert set(LAYERS) == {path.parent.name for path in ROOT.glob("*/__init__.py")}
