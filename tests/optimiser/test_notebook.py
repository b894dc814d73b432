"""What a notebook shows, executed in a real kernel."""

from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

Outputs = list[list[dict[str, Any]]]
CELLS = """
import amortes
from amortes import Float, Int, minimize
space = {"x": Float(-5, 10), "n": Int(1, 5)}
result = minimize(lambda config: (config["x"] - 2) ** 2 + config["n"], space, 5)
---
result
---
result.to_frame()
---
result.optimizer.plot()
---
print(result.optimizer.explain(result.trials[4]).text)
---
minimize(lambda config: config["x"], space, 2, progress=False).fun
"""


@pytest.fixture(scope="module")
def outputs() -> Outputs:
    made: Any = nbformat.v4
    notebook = made.new_notebook()
    notebook.cells = [made.new_code_cell(cell) for cell in CELLS.split("---\n")]
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells]


def test_a_bar_that_ends_full(outputs: Outputs) -> None:
    (bar,) = outputs[0]
    assert "<progress value='5' max='5'></progress> 5/5 trials, best " in bar["data"]["text/html"]


def test_tables(outputs: Outputs) -> None:
    for cell in outputs[1:3]:
        assert "<table" in cell[-1]["data"]["text/html"]


def test_a_picture(outputs: Outputs) -> None:
    assert len(outputs[3][-1]["data"]["image/png"]) > 10_000


def test_words_and_silence(outputs: Outputs) -> None:
    assert "Trial 4" in str(outputs[4][-1]["text"])
    assert [output["output_type"] for output in outputs[5]] == ["execute_result"]
