import pytest

from amortes import Categorical, Float, Int, Space
from amortes.lab import paste
from amortes.lab.errors import FormError
from amortes.lab.paste import read_table

SPACE = Space({"temperature": Float(0, 100), "n": Int(1, 9), "kind": Categorical(["a", "b"])})


@pytest.mark.parametrize(
    "text",
    [
        "temperature,n,kind,value\n20.5,3,a,1.25\n30,4,b,-2\n",
        "\ufefftemperature,n,kind,value\r\n20.5,3,a,1.25\r\n30,4,b,-2",
        "Temperature (°C)\tN\tKind\tYield [%]\n20,5\t3\ta\t1,25\n30\t4\tb\t-2\n\n",
        "comment;kind;yield;temperature;n\nok;a;1,25;20,5;3\n;b;-2;30;4,0",
        'yield,temperature,n,kind,unused\n"1.25","20.5",3,"a",x\n-2.0,3e1,4,b,y',
    ],
)
def test_tables_of_many_habits(text: str) -> None:
    trials = read_table(text, SPACE, "yield")
    assert [trial.config for trial in trials] == [
        {"temperature": 20.5, "n": 3, "kind": "a"},
        {"temperature": 30.0, "n": 4, "kind": "b"},
    ]
    assert [trial.value for trial in trials] == [1.25, -2.0]


@pytest.mark.parametrize("cell", ["failed", "NaN", "n/a", "-", "FAILED"])
def test_failures(cell: str) -> None:
    (trial,) = read_table(f"temperature\tn\tkind\tresult\tnote\n1\t2\ta\t{cell}\tfell", SPACE)
    assert (trial.status, trial.reason) == ("failed", "fell")


def test_costs_violations_and_trials_under_way() -> None:
    text = (
        "temperature,n,kind,value,cost,violation,status\n"
        "1,2,a,3,4,-1,done\n1,2,a,3,,0.5,done\n1,2,a,,,,pending\n1,2,b,,,,failed\n"
    )
    trials = read_table(text, SPACE)
    assert [(t.status, t.cost, t.violation) for t in trials] == [
        ("done", 4.0, -1.0),
        ("failed", None, 0.5),
        ("failed", None, None),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The first line must name the columns"),
        ("temperature,n,kind,value", "results must follow"),
        ("1,2,a,3\n2,3,b,4", "No column for temperature, n, kind, value"),
        ("temperature,n,kind\n1,2,a", "No column for value"),
        ("temperature,n,kind,value\n1,2,a,3\n200,2,a,3", r"Line 3: .*200.0 is outside"),
        ("temperature,n,kind,value\n1,2,c,3", "Line 2: kind: 'c' is not one of"),
        ("temperature,n,kind,value\n1,2,a,warm", "Line 2: value: 'warm' is not a number"),
        ("temperature,n,kind,value\n\n1,2.5,a,3", "Line 3: n: 2.5 is not a whole number"),
        ("temperature,n,kind,value\n1,2,a,", "Line 2: the value is missing"),
    ],
)
def test_mistakes_name_their_line(text: str, message: str) -> None:
    with pytest.raises(FormError, match=message) as caught:
        read_table(text, SPACE)
    assert {problem.at for problem in caught.value.problems} == {"table"}


def test_many_mistakes_and_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "\n".join(["temperature,n,kind,value", *["1,2,z,3"] * 14])
    with pytest.raises(FormError, match=r"And 4 more\."):
        read_table(rows, SPACE)
    monkeypatch.setattr(paste, "MOST_ROWS", 3)
    with pytest.raises(FormError, match="at most 3"):
        read_table(rows, SPACE)


def test_parameters_that_do_not_always_matter_may_be_missing() -> None:
    space = Space({"kind": Categorical({"a": {"x": Float(0, 1)}, "b": {}})})
    trials = read_table("kind,x,value\na,0.5,1\nb,,2", space)
    assert [trial.config for trial in trials] == [{"kind": "a", "x": 0.5}, {"kind": "b"}]
