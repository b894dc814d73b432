import html
import json
import os
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from amortes import Float, Int, Optimizer
from amortes.lab import pages
from amortes.lab.about import About, about_path
from amortes.lab.pages import ADDRESS, HERE
from amortes.lab.study import Study
from tests.lab.conftest import COFFEE

NASTY = '<script>alert("x")</script>'


@pytest.fixture
def told(client: TestClient, coffee: str) -> str:
    """The page of a study with results, whose every text tries to be markup."""
    client.patch(coffee, json={"name": NASTY, "value": NASTY, "unit": "<b>", "notes": NASTY})
    client.post(f"{coffee}/ask", json={"n": 4})
    for number, value in enumerate((1.0, 2.0, 1.5)):
        client.post(f"{coffee}/trials/{number}/tell", json={"value": value, "note": NASTY})
    return coffee.removeprefix("/api")


@pytest.mark.parametrize("part", ["", "/board", "/report"])
def test_what_users_type_is_text_and_never_markup(client: TestClient, told: str, part: str) -> None:
    page = client.get(told + part)
    assert page.status_code == 200
    assert NASTY not in page.text
    assert html.escape(NASTY, quote=False) in page.text.replace("&#34;", '"')
    assert NASTY not in client.get("/").text


def test_files_of_any_name_have_pages(client: TestClient, tmp_path: Path) -> None:
    opt = Optimizer({"x": Float(0, 1)}, start=[({"x": 0.5}, 1.0)])
    name = "Läufe & 50% #1?<b>.json"
    opt.save(tmp_path / name)
    (tmp_path / os.fsdecode(b"not-utf-8-\xff.json")).write_text((tmp_path / name).read_text())
    (address,) = re.findall(r'href="(/studies/[^"]*)"', client.get("/").text)
    for part in ("", "/board", "/report", "/results.csv", "/run.json", "/figure.png"):
        assert client.get(html.unescape(address) + part).status_code == 200


def test_the_report_has_the_figures(client: TestClient, told: str) -> None:
    report = client.get(f"{told}/report").text
    assert report.count("<svg") == 2  # the run, and its two parameters
    assert "over temperature and time" in report or "over time and temperature" in report


def test_the_list(client: TestClient, told: str, tmp_path: Path) -> None:
    (tmp_path / "torn.json").write_text('{"format": "amortes-optimizer"')
    Optimizer({"x": Float(0, 1)}).save(tmp_path / "tune.json")
    page = client.get("/").text
    assert "torn.json is not valid JSON" in page
    assert "made by a program" in page
    assert "1 waiting for results" in page


def test_an_empty_list_says_what_to_do(client: TestClient) -> None:
    assert "Create the first study" in client.get("/").text


def test_a_study_without_results(client: TestClient, coffee: str) -> None:
    path = coffee.removeprefix("/api")
    for part in ("", "/board", "/report"):
        page = client.get(path + part)
        assert page.status_code == 200
        assert "Coffee" in page.text
    assert client.get(f"{path}/figure.png").content.startswith(b"\x89PNG")


def test_a_copy_of_a_study_is_the_same_study(client: TestClient) -> None:
    wanted = {
        **COFFEE,
        "noisy": False,
        "batch": 3,
        "constraints": ["temperature + 0.5 * time <= 110", "temperature * time < 5000"],
        "table": "temperature,time,taste\n90,20,6.5\n85,30,failed\n",
    }
    made = client.post("/api/studies", json=wanted).json()
    page = client.get(f"/new?like={made['id']}").text
    text = page.partition('id="filled">')[2].partition("</script>")[0]
    filled = json.loads(text)
    for entry in filled["parameters"]:
        assert entry.pop("when") == ""
    again = client.post("/api/studies", json=filled)
    assert again.status_code == 201, again.text
    same = ("goal", "value", "unit", "units", "noisy", "batch", "space")
    assert {k: again.json()[k] for k in same} == {k: made[k] for k in same}
    assert [trial["value"] for trial in again.json()["trials"]] == [6.5, None]


@pytest.mark.parametrize(
    ("file", "media", "start"),
    [
        ("results.csv", "text/csv; charset=utf-8", b"trial,status,value"),
        ("run.json", "application/json", b"{"),
        ("figure.png", "image/png", b"\x89PNG"),
        ("figure.svg", "image/svg+xml", b"<?xml"),
        ("figure.pdf", "application/pdf", b"%PDF"),
    ],
)
def test_files(client: TestClient, told: str, file: str, media: str, start: bytes) -> None:
    answer = client.get(f"{told}/{file}")
    assert answer.headers["content-type"] == media
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.content.startswith(start)


def test_the_json_is_the_run_s_own_file(client: TestClient, told: str, tmp_path: Path) -> None:
    content = client.get(f"{told}/run.json").content
    assert content == (tmp_path / "coffee" / "state.json").read_bytes()


@pytest.mark.parametrize("path", ["/studies/none", "/studies/none/report", "/new?like=no", "/x"])
def test_errors_are_pages(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "That did not work" in answer.text


@pytest.mark.parametrize("page", ["/", "/new", "/studies/coffee", "/studies/coffee/report"])
def test_browsers_ask_for_scripts_and_styles_only_once(
    client: TestClient, coffee: str, page: str
) -> None:
    wanted = set(re.findall(r'(?:src|href)="(/static/[^"]*)"', client.get(page).text))
    assert {address.rpartition("/")[0] for address in wanted} == {ADDRESS}
    for address in wanted:
        answer = client.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]


def test_pages_themselves_are_always_asked_for(client: TestClient, coffee: str) -> None:
    assert client.get("/studies/coffee").headers["cache-control"] == "no-cache, private"


def test_scripts_name_each_other_by_where_they_are_themselves() -> None:
    for script in HERE.glob("*.js"):
        assert "/static" not in script.read_text()


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
    page = pages.drawn(study, "svg").decode()
    for text in ("height (cm)", "value (g)", "$t$ (h)", "x"):
        assert f"<!-- {text} -->" in page
    pair = pages.drawn(study, "svg", "x", "value").decode()
    assert "<!-- value (g) -->" in pair
    assert "height (cm)" not in pair


def test_a_figure_is_drawn_once(study: Study) -> None:
    assert pages.drawn(study, "png").startswith(b"\x89PNG")
    assert pages.drawn(study, "png") is pages.drawn(study, "png")
