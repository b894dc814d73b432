from pathlib import Path

import pytest

from amortes import Float, Int, Optimizer
from amortes.lab import figures
from amortes.lab.about import About, about_path
from amortes.lab.study import Study


@pytest.fixture
def study(tmp_path: Path) -> Study:
    opt = Optimizer({"value": Float(0, 1), "$t$": Int(1, 5), "x": Float(0, 1)})
    for _ in range(4):
        trial = opt.ask()
        opt.tell(trial, trial["value"] + trial["x"])
    path = tmp_path / "run.json"
    opt.save(path)
    about = About(name="Bread", value="height", unit="cm", units={"value": "g", "$t$": "h"})
    about_path(path).write_text(about.model_dump_json())
    return Study("run.json", path)


def test_axes_have_the_names_and_units_of_the_study(study: Study) -> None:
    page = figures.drawn(study, "svg").decode()
    for text in ("height (cm)", "value (g)", "$t$ (h)", "x"):
        assert f"<!-- {text} -->" in page
    pair = figures.drawn(study, "svg", "x", "value").decode()
    assert "<!-- value (g) -->" in pair
    assert "height (cm)" not in pair


def test_a_figure_is_drawn_once(study: Study) -> None:
    assert figures.drawn(study, "png").startswith(b"\x89PNG")
    assert figures.drawn(study, "png") is figures.drawn(study, "png")
