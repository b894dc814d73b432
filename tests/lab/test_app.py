from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.lab.conftest import COFFEE


@pytest.mark.parametrize(
    ("change", "at", "message"),
    [
        ({"name": " "}, "name", "This is missing."),
        ({"goal": "best"}, "goal", "Input should be 'minimize' or 'maximize'."),
        ({"batch": 0}, "batch", "Must be at least 1."),
        ({"batch": 99}, "batch", "Must be at most 50."),
        ({"parameters": []}, "parameters", "Give at least one."),
        ({"notes": "x" * 3000}, "notes", "At most 2000 characters."),
        ({"colour": 1}, "colour", "There is no field colour."),
        (
            {"parameters": [{"type": "float", "name": "x", "low": "cold", "high": 1}]},
            "parameters.0.low",
            "“cold” is not a number.",
        ),
        (
            {"parameters": [{"type": "float", "name": "x", "low": "", "high": 1}]},
            "parameters.0.low",
            "A number is missing.",
        ),
        (
            {"parameters": [{"type": "int", "name": "x", "low": 0, "high": "1,5"}]},
            "parameters.0.high",
            "“1.5” is not a whole number.",
        ),
    ],
)
def test_mistakes_in_plain_words(
    client: TestClient, change: dict[str, Any], at: str, message: str
) -> None:
    refused = client.post("/api/studies", json={**COFFEE, **change})
    assert refused.status_code == 422
    assert refused.json()["problems"] == [{"at": at, "message": message}]


def test_all_mistakes_at_once(client: TestClient) -> None:
    form = {
        **COFFEE,
        "name": "",
        "parameters": [
            {"type": "float", "name": "x", "low": "cold", "high": 1},
            {"type": "int", "name": "", "low": 5, "high": 1},
            {"type": "categorical", "name": "value", "choices": ["a"]},
            {"type": "ladder", "name": "l"},
            {"type": "float", "name": "y", "low": 0, "high": 1, "step": 2},
            {"type": "fixed", "name": "z", "value": 1, "when": {"parameter": "l", "values": [1]}},
            {"type": "fixed", "name": "z", "value": 1, "when": {"parameter": "y", "values": [1]}},
        ],
        "constraints": ["x + l <= 2", "x + w <= 2"],
    }
    refused = client.post("/api/studies", json=form)
    assert refused.status_code == 422
    assert sorted(problem["at"] for problem in refused.json()["problems"]) == [
        *("constraints.1", "name", "parameters.0.low", "parameters.1.high", "parameters.1.name"),
        *("parameters.2.choices", "parameters.2.name", "parameters.3", "parameters.4.step"),
        *("parameters.6.name", "parameters.6.when"),
    ]


@pytest.mark.parametrize("form", [[], {"parameters": 3}, {"parameters": [3, {"name": [1]}, None]}])
def test_no_form_at_all(client: TestClient, form: Any) -> None:
    assert client.post("/api/studies", json=form).status_code == 422


def test_no_json_at_all(client: TestClient) -> None:
    headers = {"Content-Type": "application/json"}
    refused = client.post("/api/studies", content="{", headers=headers)
    assert refused.status_code == 422
    assert refused.json()["error"] == "The request is not valid JSON."


def test_what_there_is_not(client: TestClient) -> None:
    assert client.get("/api/nothing").json()["error"] == "There is no such page."
    assert client.delete("/api/studies").status_code == 405
    assert client.get("/docs").status_code == 404  # it would load scripts from elsewhere


def test_the_schema_is_served(client: TestClient) -> None:
    schema = client.get("/api/openapi.json").json()
    assert schema["info"]["title"] == "amortes lab"
    assert all(path.startswith("/api/") for path in schema["paths"])
