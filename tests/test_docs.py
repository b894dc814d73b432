"""Every example in README and docs runs, and prints what the page says."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.snippets import ROOT, folder, pages, run_page, update, without_numbers

PACKAGES = {
    "botorch": "botorch",
    "optuna": "optuna",
    "scikit-learn": "sklearn",
    "past-results": "pandas",
    "ray-tune": "ray",
}


# BoTorch says so when its line search stops early, then tries again.
@pytest.mark.filterwarnings("ignore:Optimization failed:RuntimeWarning")
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run_and_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    if page.stem in PACKAGES:
        pytest.importorskip(PACKAGES[page.stem])
    with folder(tmp_path), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        printed = run_page(page)
    for example in printed:
        if example.claimed is not None:
            where = f"{page.name}, line {example.line}"
            assert without_numbers(example.output) == without_numbers(example.claimed), where


def test_the_guides_have_examples() -> None:
    found = {page.stem for page in pages()}
    assert {"README", "index", "noise", "failures", "command-line"} <= found


def test_a_wrong_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 2\n```\n\n```python\nprint('x is', x)\n```\n\n```text\ny\n```\n"
    )
    (_, example) = run_page(page)
    assert (example.line, example.output, example.claimed) == (6, "x is 2\n", "y\n")
    update(page)
    assert run_page(page)[1].claimed == "x is 2\n"
    page.write_text("```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError):
        run_page(page)


def test_numbers_may_differ() -> None:
    assert without_numbers("lr=3.1e-05,  n = -4") == without_numbers("lr=0.2, n = 12")
    assert without_numbers("act=relu") != without_numbers("act=gelu")


def test_the_tutorial_in_a_notebook_shows_bar_tables_and_plots() -> None:
    pytest.importorskip("mkdocs")
    path = ROOT / "docs" / "hooks" / "notebooks.py"
    spec = importlib.util.spec_from_file_location("notebooks", path)
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    cells = [cell for cell in hook.executed(page).cells if cell.cell_type == "code"]
    shown = [_data(output) for cell in cells for output in cell.outputs]
    pages_of_html = [data["text/html"] for data in shown if "text/html" in data]
    assert any("20/20 trials" in html for html in pages_of_html)
    assert sum("<table" in html for html in pages_of_html) >= 3
    assert any(len(data.get("image/png", "")) > 10_000 for data in shown)


def _data(output: Any) -> dict[str, str]:
    found: dict[str, str] = output.get("data", {})
    return found


def test_the_files_that_pages_name_exist() -> None:
    for page in ("architecture.md", "method.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        files = re.findall(r"`((?:\w+/)+\w+\.py)`", text)
        modules = re.findall(r"`amortes((?:\.[a-z_]+)+)`", text)
        names = [*files, *(f"{name[1:].replace('.', '/')}.py" for name in modules)]
        assert names
        assert [name for name in names if not (ROOT / "src" / "amortes" / name).exists()] == []


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert len(prose.split()) < 900
