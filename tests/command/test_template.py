import json
import sys
from pathlib import Path
from typing import Any

import pytest

from amortes.command.template import Template, variable
from amortes.errors import ConfigError
from amortes.optimiser import Categorical, Float, Space

SPACE = Space({"lr": Float(0, 1), "act": Categorical(["relu", "gelu"]), "deep": True, "model.n": 3})
CONFIG = {"lr": 0.1 + 0.2, "act": "relu", "deep": True, "model.n": 3}
FOLDER = Path("/runs/7")


def fill(*words: str) -> list[str]:
    return Template([sys.executable, *words], SPACE).fill(CONFIG, 7, FOLDER)[1:]


def test_values_take_the_places_of_names() -> None:
    assert fill("{lr}", "--act={act},{model.n}", "{deep}") == [
        "0.30000000000000004",
        "--act=relu,3",
        "true",
    ]
    assert fill("{trial_folder}/x", "{trial_number}") == ["/runs/7/x", "7"]


def test_other_braces_are_left_alone() -> None:
    words = ["${HOME}", "{}", '{"a": 1}', "{a b}", "plain"]
    assert fill(*words) == words
    assert fill("{{print}}", "{{lr}}={lr}") == ["{print}", "{lr}=0.30000000000000004"]


def test_names_may_have_any_characters() -> None:
    space = Space({"a b": Float(0, 1), "größe (cm)": Float(0, 1)})
    template = Template([sys.executable, "{a b}", "{{a b}}", "x={größe (cm)}", "{print $1}"], space)
    config = {"a b": 0.5, "größe (cm)": 0.25}
    assert template.fill(config, 0, FOLDER)[1:] == ["0.5", "{a b}", "x=0.25", "{print $1}"]
    assert template.unused == []


def test_words_about_inactive_parameters_are_left_out() -> None:
    branches: dict[str, dict[str, Any]] = {"svm": {"C": Float(0, 1)}, "bayes": {"prior": "flat"}}
    space = Space({"model": Categorical(branches)})
    words = [sys.executable, "{model}", "--C={C}", "{prior}", "echo {model} {C}", "{{C}}"]
    template = Template(words, space)
    assert template.fill({"model": "svm", "C": 0.5}, 0, FOLDER)[1:] == [
        "svm",
        "--C=0.5",
        "echo svm 0.5",
        "{C}",
    ]
    bayes = {"model": "bayes", "prior": "flat"}
    assert template.fill(bayes, 0, FOLDER)[1:] == ["bayes", "flat", "echo bayes ", "{C}"]
    assert "AMORTES_C" not in template.environment(bayes, 0, FOLDER)


def test_the_environment_has_the_same_values() -> None:
    variables = Template([sys.executable], SPACE).environment(CONFIG, 7, FOLDER)
    assert variables == {
        "AMORTES_LR": "0.30000000000000004",
        "AMORTES_ACT": "relu",
        "AMORTES_DEEP": "true",
        "AMORTES_MODEL_N": "3",
        "AMORTES_TRIAL_FOLDER": "/runs/7",
        "AMORTES_TRIAL_NUMBER": "7",
    }
    assert json.loads(variables["AMORTES_LR"]) == CONFIG["lr"]
    assert variable("learning-rate") == "AMORTES_LEARNING_RATE"


def test_mistakes_are_found_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match=r"\{rl\}, which .* lr, act, deep.* write \{\{rl\}\}"):
        fill("{rl}")
    with pytest.raises(ConfigError, match="cannot find the program 'trian-it'"):
        Template(["trian-it", "{lr}"], SPACE)
    with pytest.raises(ConfigError, match="command is missing"):
        Template([], SPACE)
    with pytest.raises(ConfigError, match="AMORTES_A_B"):
        Template([sys.executable], Space({"a-b": Float(0, 1), "a_b": Float(0, 1)}))
    assert Template(["{act}"], SPACE).fill(CONFIG, 0, FOLDER) == ["relu"]


def test_a_quoted_command_is_noticed() -> None:
    with pytest.raises(ConfigError, match="leave out the quotes"):
        Template(["./train.sh {lr} {act}"], SPACE)
    with pytest.raises(ConfigError, match="leave out the quotes"):
        Template(["./train.sh {lr} {act}" + " --more" * 1000], SPACE)


def test_parameters_that_no_argument_has() -> None:
    assert Template([sys.executable, "{lr}"], SPACE).unused == ["act"]
    assert Template([sys.executable, "{lr}", "--a={act}"], SPACE).unused == []
    assert Template([sys.executable, "{trial_folder}/config.json"], SPACE).unused == []
    assert Template([sys.executable, "{{lr}}", "{act}"], SPACE).unused == ["lr"]
