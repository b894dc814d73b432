import math
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
from matplotlib.figure import Figure

from amortes.bench.report.parts import Drawing, Table, spread, text_of, with_error

CELLS = pd.DataFrame(
    {"problem": ["8-D|x", "b"], "n": ["**1.5**", ""], "verdict": ["", "**level**"]}
)
TABLE = Table("coverage", "A title", CELLS)


def test_markdown() -> None:
    assert TABLE.markdown().splitlines() == [
        "**A title**",
        "",
        "| problem | n | verdict |",
        "| --- | ---: | ---: |",
        "| 8-D\\|x | **1.5** |  |",
        "| b |  | **level** |",
    ]


def test_html() -> None:
    cells = pd.DataFrame({"problem": ["<b>"], "n": ["**1.5**"], "test": ["x" * 99]})
    text = "".join(Table("coverage", "", cells).html().split())
    assert "<th>problem</th><th>n</th>" in text
    assert f"<td>&lt;b&gt;</td><td><strong>1.5</strong></td><td>{'x' * 99}</td>" in text


def test_csv() -> None:
    assert TABLE.csv() == "problem,n,verdict\n8-D|x,1.5,\nb,,level\n"
    data = pd.DataFrame({"a": ["x, y"], "b": [1 / 3], "n": [3], "c": [float("nan")]})
    assert Drawing("ranks", "", Figure(), data).csv() == 'a,b,n,c\n"x, y",0.333333,3,\n'


def test_cells_are_spread_in_the_order_of_the_rows() -> None:
    rows = pd.DataFrame(
        {"a": ["z", "z", "b"], "n": [9, 1, 1], "mean": [1, 2, 3], "best": [0, 1, 0]}
    )
    cells = text_of(rows.assign(standard_error=[0.5, float("nan"), 0.25]), digits=1)
    assert cells == ["1.0 ± 0.5", "**2.0**", "3.0 ± 0.2"]
    wide = spread(rows, ["a"], "n", cells)
    assert [*wide] == ["a", 9, 1]
    assert wide.to_numpy().tolist() == [["z", *cells[:2]], ["b", "", cells[2]]]


def test_means_with_their_errors() -> None:
    assert with_error(-1.234, 0.056) == "-1.23 ± 0.06"
    assert with_error(1.0, math.nan, 3) == "1.000"
    assert with_error(math.nan, 1.0) == ""


def test_files(tmp_path: Path) -> None:
    png, svg, data = Drawing("name", "", Figure(), pd.DataFrame({"a": [1]})).write(tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "background: white" in ElementTree.parse(svg).getroot().attrib["style"]
    assert data.read_text() == "a\n1\n"
    (table,) = TABLE.write(tmp_path)
    assert table.read_text() == TABLE.markdown()
