from pathlib import Path
from typing import Any

import pytest

from amortes.command import spacefile
from amortes.command.spacefile import read_space
from amortes.errors import ConfigError, FileError
from amortes.optimiser import Categorical, Float, Int, Linear, Ordinal, Space
from amortes.optimiser.expression import Expression

FLOAT = '[lr]\ntype = "float"\nlow = 1e-5\nhigh = 0.1\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "space.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_a_file_can_say(tmp_path: Path) -> None:
    space = read_space(
        write(
            tmp_path,
            'epochs = 20\nname = "a b"\n'
            + FLOAT
            + "log = true\n"
            + '[layers]\ntype = "int"\nlow = 1\nhigh = 8\nstep = 2\n'
            + '[size]\ntype = "ordinal"\nchoices = [16, 32, 64]\n'
            + '[act]\ntype = "categorical"\nchoices = ["relu", "gelu"]\n'
            + "[[constraints]]\ncoefficients = { layers = 2, lr = 1.5 }\nupper = 9\n"
            + "[[constraints]]\ncoefficients = { layers = -1 }\nupper = -2\n"
            + "[[constraints]]\nexpression = \"layers * lr < 0.5 or act == 'relu'\"\n",
        )
    )
    assert space.parameters == {
        "epochs": 20,
        "name": "a b",
        "lr": Float(1e-5, 0.1, log=True),
        "layers": Int(1, 8, step=2),
        "size": Ordinal([16, 32, 64]),
        "act": Categorical(["relu", "gelu"]),
    }
    assert space.constraints == (
        Linear({"layers": 2, "lr": 1.5}, upper=9),
        Linear({"layers": -1}, upper=-2),
        Expression("layers * lr < 0.5 or act == 'relu'"),
    )


def test_choices_may_bring_parameters(tmp_path: Path) -> None:
    space = read_space(
        write(
            tmp_path,
            '[model]\ntype = "categorical"\n'
            '[model.choices.svm.C]\ntype = "float"\nlow = 1\nhigh = 9\n'
            '[model.choices.svm.kernel]\ntype = "categorical"\n'
            '[model.choices.svm.kernel.choices.rbf.gamma]\ntype = "int"\nlow = 1\nhigh = 2\n'
            "[model.choices.svm.kernel.choices.linear]\n"
            "[model.choices.bayes]\nmode = 3\n",
        )
    )
    kernel = Categorical({"rbf": {"gamma": Int(1, 2)}, "linear": {}})
    branches: dict[str, Any] = {"svm": {"C": Float(1, 9), "kernel": kernel}, "bayes": {"mode": 3}}
    assert space == Space({"model": Categorical(branches)})


def test_the_example_of_the_module_is_valid(tmp_path: Path) -> None:
    lines = (spacefile.__doc__ or "").splitlines()
    example = "\n".join(line for line in lines if line.startswith("    "))
    width = '[width]\ntype = "int"\nlow = 8\nhigh = 64\n'
    assert read_space(write(tmp_path, example + "\n" + width)).d == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[lr]\nlow = 1\nhigh = 2", r"\[lr\] type is missing; it must be one of float, int"),
        ('[lr]\ntype = "real"', r"\[lr\] type is 'real'; it must be"),
        (FLOAT + "hihg = 3", r"\[lr\] unknown key 'hihg'; float takes low, high, log, step"),
        ('[lr]\ntype = "int"\nlow = 1', r"\[lr\] high is missing; int needs low and high"),
        ('[a]\ntype = "ordinal"', r"\[a\] choices is missing; ordinal needs choices"),
        ('[lr]\ntype = ["float"]\n', r"\[lr\] type is \['float'\]; it must be one of"),
        (FLOAT + 'log = "yes"', r"\[lr\] Float: log must be True or False, not 'yes'"),
        ('[lr]\ntype = "float"\nlow = 2\nhigh = 1', r"\[lr\] Float: low must be below high"),
        ('[n]\ntype = "int"\nlow = 1.5\nhigh = 3', r"\[n\] Int: low must be an int, not 1.5"),
        ("a = 1", "nothing varies"),
        ("", "nothing varies"),
        (FLOAT + "[constraints]\nupper = 1", r"must be written as \[\[constraints\]\]"),
        (
            FLOAT + "[[constraints]]\nupper = 1",
            "coefficients and upper, or an expression",
        ),
        (
            FLOAT + '[[constraints]]\nupper = "a"\ncoefficients = {lr = 1}',
            r"\[\[constraints\]\] number 1: Linear: upper must be a finite number",
        ),
        (FLOAT + "[[constraints]]\nupper = 1\ncoefficients = {x = 1}", "no parameter 'x'"),
        (
            FLOAT + '[[constraints]]\nexpression = "lr <"',
            r"number 1: constraints: 'lr <' is not valid",
        ),
        (
            FLOAT + '[[constraints]]\nexpression = "x < 1"',
            "'x < 1' uses x, which is not a parameter; choose from lr",
        ),
        (FLOAT + "[[constraints]]\nexpression = 3", "number 1: constraints: expected a string"),
        (
            '[m]\ntype = "categorical"\n[m.choices.a.x]\ntype = "int"\nlow = 1',
            r"\[m.choices.a.x\] high is missing",
        ),
        (
            '[m]\ntype = "categorical"\n[m.choices]\na = 1\nb = 2',
            r"\[m.choices.a\] must be a table of parameters, not 1",
        ),
        ('[m]\ntype = "ordinal"\n[m.choices.a]\n', r"\[m\] Ordinal: choices must be a list"),
        (
            '[m]\ntype = "ordinal"\nchoices = [2026-01-01, 2026-01-02]\n',
            r"\[m\] choices must be strings, numbers",
        ),
        ("when = 2026-01-01\n" + FLOAT, "when: expected Float"),
    ],
)
def test_errors_name_the_file_and_the_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=r"space\.toml: .*" + message):
        read_space(write(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        read_space(tmp_path / "none.toml")
    with pytest.raises(FileError, match="is a folder"):
        read_space(tmp_path)
    with pytest.raises(FileError, match=r"not valid TOML: .*line 1"):
        read_space(write(tmp_path, "lr: 3"))
