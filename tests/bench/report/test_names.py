import pandas as pd
import pytest

from amortes.bench.report.names import (
    facts,
    group_of,
    order_methods,
    order_problems,
    panel_label,
    panel_of,
    parse_method,
    same_acquisition,
)


@pytest.mark.parametrize(
    ("name", "model", "acquisition", "weights", "column"),
    [
        ("jes", "ours", "jes", "", "jes"),
        ("jes@kernel-paper", "ours", "jes", "kernel-paper", "jes"),
        ("logei", "ours", "logei", "", "ei"),
        ("fb-pes", "fb", "pes", "", "pes"),
        ("map-gibbon", "map", "gibbon", "", "mes"),
        ("paper:mes", "paper", "mes", "", "mes"),
        ("paper:fb-mes", "paper:fb", "mes", "", "mes"),
        ("paper:mes@uniform", "paper", "mes", "uniform", "mes"),
        ("optuna-gp", "other", "", "", ""),
        ("random", "other", "", "", ""),
        ("someone-ei", "other", "", "", ""),
        ("foo:jes", "other", "", "", ""),
        ("foo:fb-jes", "other", "", "", ""),
        ("paper:map-jes", "other", "", "", ""),
    ],
)
def test_methods(name: str, model: str, acquisition: str, weights: str, column: str) -> None:
    method = parse_method(name)
    found = (method.model, method.acquisition, method.weights, method.column)
    assert found == (model, acquisition, weights, column)


def test_labels() -> None:
    assert parse_method("jes@paper").label == "amortes JES @paper"
    assert parse_method("map-gibbon").label == "MAP GP MES (GIBBON)"
    assert parse_method("paper:fb-ei").label == "published fully Bayesian GP EI"
    assert parse_method("optuna-tpe").label == "Optuna TPE"
    assert parse_method("smac-hpo").label == "SMAC forest"
    for unknown in ("unheard-of", "foo:jes", "paper:map-jes"):
        assert parse_method(unknown).label == unknown


def test_the_same_acquisition_on_another_model() -> None:
    names = ["fb-logei", "fb-ei", "fb-mes@other", "map-gibbon"]
    assert same_acquisition(names, "ei", "fb") == "fb-ei"
    assert same_acquisition(names, "logei", "fb") == "fb-logei"
    assert same_acquisition(names[1:], "logei", "fb") == "fb-ei"
    assert same_acquisition(names, "mes", "map") == "map-gibbon"
    assert same_acquisition(names, "mes", "fb") is None
    assert same_acquisition(["random"], "random", "other") is None


def test_facts_stand_beside_the_names() -> None:
    found = facts(pd.Series(["jes", "jes@x", "random"], index=[3, 1, 2]))
    assert found["is_ours"].to_dict() == {3: True, 1: False, 2: False}
    assert found["weights"].tolist() == ["", "x", ""]
    assert facts(pd.Series([], dtype=str)).empty


@pytest.mark.parametrize(
    ("problem", "kind", "group", "label"),
    [
        ("branin", "synthetic", "branin", "Branin, 2-D"),
        ("ackley8-noise0.5", "noise", "ackley8-noise0.5", "Ackley, 8-D, noise 0.5"),
        ("lcbench-fashion-mnist", "lcbench", "lcbench-fashion-mnist", "LCBench Fashion-MNIST, 7-D"),
        ("hpob-5527-31", "hpob", "hpob-5527", "HPO-B 5527, 8-D"),
        ("sklearn-svm-digits", "other", "sklearn-svm-digits", "SVM on digits (accuracy)"),
    ],
)
def test_problems(problem: str, kind: str, group: str, label: str) -> None:
    assert group_of(problem) == kind
    assert panel_of(problem) == group
    assert panel_label(group) == label


def test_order() -> None:
    problems = ["sklearn-a", "hpob-5971-43", "ackley8", "hpob-5527-31", "branin", "lcbench-car"]
    assert order_problems(problems) == [
        "branin",
        "ackley8",
        "lcbench-car",
        "hpob-5527-31",
        "hpob-5971-43",
        "sklearn-a",
    ]
    methods = ["random", "map-jes", "jes@x", "fb-ei", "jes", "pes", "jes"]
    assert order_methods(methods) == ["pes", "jes", "jes@x", "fb-ei", "map-jes", "random"]
