from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from amortes.lab.app import create_app

TOKEN = "a-token-for-tests-0123456789"
COFFEE: dict[str, Any] = {
    "name": "Coffee",
    "goal": "maximize",
    "value": "taste",
    "unit": "points",
    "parameters": [
        {"type": "float", "name": "temperature", "low": 80, "high": 100, "unit": "°C"},
        {"type": "int", "name": "time", "low": 10, "high": 60, "unit": "s"},
    ],
}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A client of the lab of an empty folder that has the token."""
    app = create_app(tmp_path, token=TOKEN)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(app, base_url="http://127.0.0.1:8765", headers=headers) as client:
        yield client


@pytest.fixture
def coffee(client: TestClient) -> str:
    """The path of a study without trials."""
    made = client.post("/api/studies", json=COFFEE)
    assert made.status_code == 201, made.text
    return f"/api/studies/{made.json()['id']}"
