from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from amortes import Categorical, Float, Int, Optimizer, Space
from amortes.lab import learned
from amortes.lab.errors import ConflictError, NotFoundError
from amortes.lab.study import Study

SPACE = Space(
    {"x": Float(0.01, 1, log=True), "n": Int(1, 5), "kind": Categorical(["a", "b", "c"])},
    constraints=["x * n <= 2"],
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    opt = Optimizer(SPACE, "maximize")
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, trial["x"] + trial["n"] - 3.0 * (trial["kind"] == "b"))
    opt.ask()
    path = tmp_path_factory.mktemp("learned") / "run.json"
    opt.save(path)
    return Study("run.json", path)


def test_the_overview_is_what_the_optimiser_says(study: Study) -> None:
    overview = study.ask_model("overview", learned.overview)
    own = Optimizer.load(study.path)
    assert overview["recommendation"] == vars(own.recommend())
    assert overview["importance"] == own.importance()
    assert overview["expected_gain"] == own.expected_gain()
    assert overview["worth"] in ("yes", "maybe", "no")


def test_one_terrible_result_does_not_hide_what_is_left_to_gain(tmp_path: Path) -> None:
    opt = Optimizer({"x": Float(0, 1)})
    for x, value in ((0.1, 3.0), (0.9, 4.0), (0.5, 2.0), (0.6, 1e30)):
        opt.tell({"x": x}, value)
    opt.save(tmp_path / "run.json")
    study = Study("run.json", tmp_path / "run.json")
    assert study.ask_model(None, learned.overview)["worth"] == "yes"


def test_slices_go_through_the_recommendation(study: Study) -> None:
    found = study.ask_model("slices", learned.slices)
    own = Optimizer.load(study.path)
    centre = own.recommend().config
    assert found["centre"] == centre
    assert [panel["name"] for panel in found["panels"]] == ["x", "n", "kind"]
    assert [panel["axis"] for panel in found["panels"]] == ["log", "linear", "category"]
    assert found["results"] == [t.value for t in own.trials if t.value is not None]
    for panel in found["panels"]:
        configs = [{**centre, panel["name"]: value} for value in panel["values"]]
        predicted = own.predict(configs)
        assert panel["median"] == pytest.approx([p.median for p in predicted])
        assert panel["lower"] == pytest.approx([p.lower for p in predicted])
        assert panel["upper"] == pytest.approx([p.upper for p in predicted])
        assert panel["gain"] == pytest.approx(own.gains(configs))


def test_contours_have_a_row_for_each_value_upwards(study: Study) -> None:
    found = study.ask_model(
        None, lambda optimizer, snapshot: learned.contour(optimizer, snapshot, "x", "n")
    )
    own = Optimizer.load(study.path)
    across, up = found["x"]["values"], found["y"]["values"]
    assert (across[0], across[-1]) == pytest.approx((0.01, 1.0))
    assert up == [1, 2, 3, 4, 5]
    config = {**found["centre"], "x": across[3], "n": up[1]}
    predicted = own.predict(config)
    assert found["median"][1][3] == pytest.approx(predicted.median)
    assert found["half_width"][1][3] == pytest.approx((predicted.upper - predicted.lower) / 2)
    assert found["gain"][1][3] == pytest.approx(own.gains([config])[0])
    for i, n in enumerate(up):
        for j, x in enumerate(across):
            assert (found["allowed"][i][j] is not None) == (x * n <= 2)
    assert [point["status"] for point in found["told"]] == ["done"] * 8 + ["pending"]


def test_pairs_that_make_no_picture(study: Study) -> None:
    for x, y, error in (("x", "x", ConflictError), ("x", "z", NotFoundError)):
        with pytest.raises(error):
            study.ask_model(None, partial(learned.contour, x=x, y=y))


def test_parameters_that_do_not_always_matter(tmp_path: Path) -> None:
    branch = {"a": {"x": Float(0, 1), "y": Float(0, 1)}, "b": {"z": Float(0, 1)}}
    opt = Optimizer({"kind": Categorical(branch), "w": Float(0, 1)})
    for i in range(5):
        opt.tell({"kind": "a", "x": i / 4, "y": 0.5, "w": 0.5}, i)
        opt.tell({"kind": "b", "z": i / 4, "w": 0.5}, 9.0)
    opt.save(tmp_path / "run.json")
    study = Study("run.json", tmp_path / "run.json")
    panels = study.ask_model("slices", learned.slices)["panels"]
    assert [panel["name"] for panel in panels] == ["kind", "x", "y", "w"]
    told = next(panel["told"] for panel in panels if panel["name"] == "x")
    assert told == [value for i in range(5) for value in (i / 4, None)]
    found = study.ask_model(None, lambda o, s: learned.contour(o, s, "x", "y"))
    assert len(found["told"]) == 5
    with pytest.raises(ConflictError, match="do not always matter at the same time"):
        study.ask_model(None, lambda o, s: learned.contour(o, s, "kind", "z"))


def test_values_along_a_parameter() -> None:
    def values(parameter: Any, most: int, known: Sequence[Any] = ()) -> list[Any]:
        configs = [{"p": value} for value in known]
        return learned.values_of(Space({"p": parameter}), "p", most, configs)

    assert values(Int(1, 4), 10) == [1, 2, 3, 4]
    assert values(Float(0, 1), 3) == [0.0, 0.5, 1.0]
    assert values(Float(1, 100, log=True), 3) == pytest.approx([1, 10, 100])
    assert values(Int(1, 1000), 11)[:2] == [1, 101]
    assert values(Categorical(list("abc")), 2) == ["a", "b"]
    assert values(Categorical(list("abc")), 2, ["c", "c"]) == ["a", "c"]
    assert values(Categorical(list("abc")), 1, ["b", "c"]) == ["b"]


def test_of_many_choices_the_recommended_is_shown(tmp_path: Path) -> None:
    opt = Optimizer({"c": Categorical([f"c{i}" for i in range(100)]), "x": Float(0, 1)})
    for i in range(60, 66):
        opt.tell({"c": f"c{i}", "x": 0.5}, float(abs(i - 63)))
    opt.save(tmp_path / "run.json")
    study = Study("run.json", tmp_path / "run.json")
    best = opt.recommend().config["c"]
    panels = study.ask_model("slices", learned.slices)["panels"]
    assert best in panels[0]["values"]
    assert len(panels[0]["values"]) == learned.LINE
    pair = study.ask_model("pair", partial(learned.contour, x="c", y="x"))
    assert best in pair["x"]["values"]


def test_pairs_are_of_what_matters_most_and_at_the_same_time() -> None:
    branches = {"a": {"p": Float(0, 1), "q": Float(0, 1)}, "b": {}}
    space = Space({"m": Categorical(branches), "x": Float(0, 1), "y": Float(0, 1)})
    shares = dict.fromkeys(["p", "m", "x", "y", "q"], 0.2)
    recommended = {"m": "a", "p": 0.5, "q": 0.5, "x": 0.5, "y": 0.5}
    overview = {"importance": shares, "recommendation": {"config": recommended}}
    assert learned.pairs(space, overview) == [("p", "x"), ("m", "x")]
    overview["recommendation"] = {"config": {"m": "b", "x": 0.5, "y": 0.5}}
    assert learned.pairs(space, overview) == [("m", "x"), ("m", "y"), ("x", "y")]
    alone = {"importance": {"x": 1.0}, "recommendation": {"config": {"x": 0.5}}}
    assert learned.pairs(Space({"x": Float(0, 1)}), alone) == []
