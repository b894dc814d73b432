import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from amortes import Float, Optimizer, minimize
from amortes.lab import learned
from tests.lab.conftest import COFFEE


def test_a_study_from_the_first_suggestion_to_the_recommendation(
    client: TestClient, coffee: str, tmp_path: Path
) -> None:
    asked = client.post(f"{coffee}/ask", json={"n": 3}).json()["trials"]
    assert [trial["number"] for trial in asked] == [0, 1, 2]
    for trial, value in reversed(list(zip(asked, (5.0, 7.5, 6.0), strict=True))):
        told = client.post(f"{coffee}/trials/{trial['number']}/tell", json={"value": value})
        assert told.status_code == 200
    (new,) = client.post(f"{coffee}/ask", json={"n": 1}).json()["trials"]
    predicted = new["predicted"]
    assert predicted["lower"] < predicted["median"] < predicted["upper"]
    assert predicted["reason"]

    # The file is the run: another program goes on exactly as the lab would.
    run = Optimizer.load(tmp_path / "coffee" / "state.json")
    assert [trial.value for trial in run.trials] == [5.0, 7.5, 6.0, None]
    assert run.trials[3].config == new["config"]
    recommended = client.get(f"{coffee}/recommend").json()
    assert recommended == vars(run.recommend())
    configs = [new["config"], asked[0]["config"]]
    for answer, own in zip(
        client.post(f"{coffee}/predict", json={"configs": configs, "level": 0.5}).json(),
        run.predict(configs, level=0.5),
        strict=True,
    ):
        assert answer.items() <= own.to_dict().items()


def test_suggestions_are_those_of_the_optimiser(client: TestClient, coffee: str) -> None:
    own = Optimizer(
        {"temperature": Float(80, 100), "time": _space_of(client, coffee)["time"]}, "maximize"
    )
    for value in (1.0, 2.0, 1.5, 1.7):
        trial = own.ask()
        own.tell(trial, value)
        (asked,) = client.post(f"{coffee}/ask", json={}).json()["trials"]
        assert asked["config"] == trial.config
        client.post(f"{coffee}/trials/{asked['number']}/tell", json={"value": value})


def _space_of(client: TestClient, study: str) -> dict[str, object]:
    from amortes import Space

    return dict(Space.from_dict(client.get(study).json()["space"]).free)


@pytest.mark.parametrize(
    ("body", "status", "value", "violation"),
    [
        ({"value": "3,25"}, "done", 3.25, None),
        ({"value": 3, "cost": 2.5, "note": " sour "}, "done", 3.0, None),
        ({"failed": True, "note": "burnt"}, "failed", None, None),
        ({"value": 3, "violation": 0.5}, "failed", None, 0.5),
        ({"value": 3, "violation": -0.5}, "done", 3.0, -0.5),
        ({"violation": 0.5}, "failed", None, 0.5),
    ],
)
def test_every_kind_of_result(
    client: TestClient,
    coffee: str,
    body: dict[str, object],
    status: str,
    value: float | None,
    violation: float | None,
) -> None:
    client.post(f"{coffee}/ask", json={})
    trial = client.post(f"{coffee}/trials/0/tell", json=body).json()["trial"]
    assert (trial["status"], trial["value"], trial["violation"]) == (status, value, violation)
    assert trial["cost"] == body.get("cost")
    if "note" in body:
        assert trial["note"] == str(body["note"]).strip()


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({}, "value"),
        ({"value": "hot"}, "value"),
        ({"value": 3, "failed": True}, "value"),
        ({"value": 3, "cost": 0}, "cost"),
        ({"value": 3, "cost": "-1"}, "cost"),
        ({"value": 3, "config": {"temperature": 200, "time": 20}}, "config.temperature"),
        ({"value": 3, "config": {"temperature": 90}}, "config.time"),
        ({"value": 3, "config": {"temperature": 90, "time": "20,5"}}, "config.time"),
        ({"value": 3, "surprise": 1}, "surprise"),
    ],
)
def test_a_wrong_result_names_its_field_and_changes_nothing(
    client: TestClient, coffee: str, body: dict[str, object], at: str
) -> None:
    client.post(f"{coffee}/ask", json={})
    before = client.get(coffee).json()
    refused = client.post(f"{coffee}/trials/0/tell", json=body)
    assert refused.status_code == 422
    assert [problem["at"] for problem in refused.json()["problems"]] == [at]
    assert client.get(coffee).json() == before


def test_other_values_than_suggested(client: TestClient, coffee: str) -> None:
    client.post(f"{coffee}/ask", json={})
    body = {"value": 4, "config": {"temperature": "91,5", "time": "20"}}
    told = client.post(f"{coffee}/trials/0/tell", json=body).json()
    assert told["message"] == "Trial 1 is saved with 4. It replaces trial 0."
    trial = told["trial"]
    assert trial["number"] == 1
    assert trial["config"] == {"temperature": 91.5, "time": 20}
    statuses = [trial["status"] for trial in client.get(coffee).json()["trials"]]
    assert statuses == ["withdrawn", "done"]


def test_own_trials_corrections_and_drops(client: TestClient, coffee: str) -> None:
    config = {"temperature": 90, "time": 30}
    own = client.post(f"{coffee}/trials", json={"config": config}).json()["trial"]
    assert own["status"] == "pending"
    assert own["predicted"]["kind"] == "own"
    told = {"config": config, "result": {"value": 2}}
    # A result of a config that is waiting for one is that trial's.
    assert client.post(f"{coffee}/trials", json=told).json()["trial"]["number"] == 0
    corrected = client.put(f"{coffee}/trials/0/result", json={"value": 3, "note": "typo"})
    assert corrected.json()["trial"]["value"] == 3.0
    dropped = client.post(f"{coffee}/trials/0/withdraw").json()["trial"]
    assert dropped["status"] == "withdrawn"
    for again in ("withdraw", "tell"):
        body = {"value": 1} if again == "tell" else None
        assert client.post(f"{coffee}/trials/0/{again}", json=body).status_code == 409
    assert client.put(f"{coffee}/trials/0/result", json={"value": 3}).status_code == 409
    assert client.post(f"{coffee}/trials/7/withdraw").status_code == 404


def test_undo_takes_back_change_by_change(client: TestClient, coffee: str, tmp_path: Path) -> None:
    file = tmp_path / "coffee" / "state.json"
    contents = [file.read_text()]
    config = {"temperature": 90, "time": 30}
    for path, body in (
        ("ask", {"n": 2}),
        ("trials/0/tell", {"value": 1.5}),
        ("trials", {"config": config, "result": {"failed": True}}),
        ("trials/1/withdraw", None),
        ("table", {"table": "temperature,time,taste\n85,20,3\n86,21,4"}),
    ):
        assert client.post(f"{coffee}/{path}", json=body).status_code in (200, 201)
        contents.append(file.read_text())
    for before in reversed(contents[:-1]):
        assert client.get(coffee).json()["undo"]
        assert client.post(f"{coffee}/undo").status_code == 200
        assert file.read_text() == before
    assert client.get(coffee).json()["undo"] is None
    assert client.post(f"{coffee}/undo").status_code == 409


def test_a_change_of_an_older_version_is_refused(client: TestClient, coffee: str) -> None:
    old = client.get(coffee).json()["version"]
    headers = {"If-Match": f'"{old}"'}
    assert client.post(f"{coffee}/ask", json={}, headers=headers).status_code == 200
    before = client.get(coffee).json()
    for method, path, body in (
        ("POST", "/ask", {}),
        ("POST", "/trials/0/tell", {"value": 1}),
        ("POST", "/trials/0/withdraw", None),
        ("POST", "/undo", None),
        ("PATCH", "", {"name": "Tea"}),
    ):
        refused = client.request(method, coffee + path, json=body, headers=headers)
        assert refused.status_code == 412
        assert "changed" in refused.json()["error"]
    assert client.get(coffee).json() == before
    renamed = client.patch(coffee, json={"name": "Tea"}, headers={"If-Match": before["version"]})
    assert renamed.json()["version"] not in (old, before["version"])
    assert client.get(coffee).json()["name"] == "Tea"


def test_a_study_that_has_not_changed_is_not_sent_again(client: TestClient, coffee: str) -> None:
    tag = client.get(coffee).headers["etag"]
    assert client.get(coffee, headers={"If-None-Match": tag}).status_code == 304
    client.post(f"{coffee}/ask", json={})
    assert client.get(coffee, headers={"If-None-Match": tag}).status_code == 200


def test_past_results_begin_a_study(client: TestClient, tmp_path: Path) -> None:
    table = "Temperature (°C);Time;Taste\n90,5;20;6,5\n85;30;failed\n"
    seen = client.post(
        "/api/check-table",
        json={"parameters": COFFEE["parameters"], "value": "taste", "table": table},
    ).json()
    assert [(trial["config"]["temperature"], trial["value"]) for trial in seen] == [
        (90.5, 6.5),
        (85.0, None),
    ]
    made = client.post("/api/studies", json={**COFFEE, "table": table}).json()
    assert (made["results"], made["failed"]) == (1, 1)
    assert Optimizer.load(tmp_path / made["id"] / "state.json").past == 2


def test_a_program_s_run_is_shown_and_can_be_taken_over(client: TestClient, tmp_path: Path) -> None:
    minimize(
        lambda config: float(config["x"]) ** 2,
        {"x": Float(-1, 1)},
        3,
        state=tmp_path / "tune.json",
        progress=False,
    )
    (listed,) = client.get("/api/studies").json()
    assert (listed["id"], listed["owned"], listed["results"]) == ("tune.json", False, 3)
    path = "/api/studies/tune.json"
    refused = client.post(f"{path}/ask", json={})
    assert refused.status_code == 423
    assert "program" in refused.json()["error"]
    assert client.post(f"{path}/adopt").status_code == 200
    assert client.post(f"{path}/ask", json={}).status_code == 200
    assert len(json.loads((tmp_path / "tune.json").read_text())["trials"]) == 4


def test_questions_before_there_is_a_result(client: TestClient, coffee: str) -> None:
    body = {"configs": [{"temperature": 90, "time": 20}]}
    answers = [client.get(f"{coffee}/{what}") for what in ("recommend", "overview", "slices")]
    answers.append(client.post(f"{coffee}/predict", json=body))
    answers.append(client.get(f"{coffee}/contour?x=temperature&y=time"))
    assert [answer.status_code for answer in answers] == [409] * 5


def test_counts_and_the_best(client: TestClient, coffee: str) -> None:
    client.post(f"{coffee}/ask", json={"n": 4})
    client.post(f"{coffee}/trials/0/tell", json={"value": 2.0})
    client.post(f"{coffee}/trials/1/tell", json={"value": 3.0})
    client.post(f"{coffee}/trials/2/tell", json={"failed": True})
    (summary,) = client.get("/api/studies").json()
    study = client.get(coffee).json()
    assert summary.items() <= study.items()
    counts = {k: summary[k] for k in ("results", "failed", "pending", "best")}
    assert counts == {"results": 2, "failed": 1, "pending": 1, "best": 3.0}
    assert study["trials"][0]["predicted"]["kind"] == "initial"
    assert study["units"] == {"temperature": "°C", "time": "s"}


def test_numbers_that_json_does_not_have(
    client: TestClient, coffee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"a": [1.0, float("nan")], "b": {"c": float("-inf")}, "d": "nan", "e": None, "f": 1}
    monkeypatch.setattr(learned, "overview", lambda *_: given)
    expected = {"a": [1.0, None], "b": {"c": None}, "d": "nan", "e": None, "f": 1}
    assert client.get(f"{coffee}/overview").json() == expected
