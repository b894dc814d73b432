import pandas as pd
from matplotlib.figure import Figure

from amortes.bench.report.parts import Drawing, Section, Study, Table
from tests.bench.report.fake import results, run

TABLE = Table(
    "coverage",
    pd.DataFrame({"problem": ["8-D|x", "b"], "n": ["**1.5**", ""], "verdict": ["", "**level**"]}),
)


def test_markdown() -> None:
    lines = TABLE.markdown().splitlines()
    assert lines[0] == "**Runs: (tasks ×) seeds × observations**"
    assert lines[2:] == [
        "| problem | n | verdict |",
        "|---|---:|---|",
        "| 8-D\\|x | **1.5** |  |",
        "| b |  | **level** |",
    ]


def test_csv() -> None:
    assert TABLE.csv() == "problem,n,verdict\n8-D|x,1.5,\nb,,level\n"
    data = pd.DataFrame({"a": ["x, y"], "b": [1 / 3], "n": [3], "c": [float("nan")]})
    assert Drawing("ranks", Figure(), data, "%.2f").csv() == 'a,b,n,c\n"x, y",0.33,3,\n'


def test_prose_has_its_gaps_filled() -> None:
    table = Table("families-wins", TABLE.cells, words={"reference": "amortes JES"})
    assert table.heading == "Win rate of amortes JES against each method, by family"
    assert "(the first is 0.3)" in Section("noise", words={"noise": 0.3}).reading
    assert Section("noise").empty


def test_groups_and_all_together(study: Study) -> None:
    found = study.titled_groups
    assert list(found) == [
        *("synthetic", "synthetic, other noise", "LCBench", "HPO-B", "other", "all problems"),
    ]
    assert found["all problems"] == study.results.problems
    assert list(Study(results(run("branin", "jes", 0, [0.0]))).titled_groups) == ["synthetic"]
