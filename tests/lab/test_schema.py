"""The API attacked from its own schema: whatever comes in, no 500, and nothing told is lost."""

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from starlette.testclient import TestClient

from amortes import Optimizer
from amortes.lab.app import create_app
from tests.lab.conftest import COFFEE, TOKEN

TRIALS = 6
SCHEMA = schemathesis.openapi.from_dict(create_app(Path(), token=TOKEN).openapi())
FOUND: list[Any] = [found.ok() for found in SCHEMA.get_all_operations()]  # type: ignore[union-attr]
OPERATIONS = {operation.label: operation for operation in FOUND}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def lab(place: Path) -> TestClient:
    """A lab with a study that has results, a failure and pending trials."""
    client = TestClient(
        create_app(place, token=TOKEN),
        base_url="http://127.0.0.1:8765",
        headers={"Authorization": f"Bearer {TOKEN}"},
    )
    client.post("/api/studies", json=COFFEE)
    client.post("/api/studies/coffee/ask", json={"n": TRIALS})
    for number, body in enumerate(({"value": 1.5}, {"value": 2.5, "cost": 2}, {"failed": True})):
        told = client.post(f"/api/studies/coffee/trials/{number}/tell", json=body)
        assert told.status_code == 200
    return client


def test_the_schema_has_what_instruments_need() -> None:
    for name in ("ask", "recommend", "predict", "trials/{number}/tell", "trials/{number}/withdraw"):
        assert any(label.endswith(f"/studies/{{study}}/{name}") for label in OPERATIONS)


@pytest.mark.filterwarnings("ignore::amortes.AmortesWarning")
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: str(mode.value))
@pytest.mark.parametrize("label", sorted(OPERATIONS))
def test_no_request_breaks_the_lab(
    label: str, mode: GenerationMode, lab: TestClient, place: Path
) -> None:
    file = place / "coffee" / "state.json"

    # Mostly the study and the trials that there are: else all would end in a 404.
    @seed(20261118)
    @settings(
        max_examples=6,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=OPERATIONS[label].as_strategy(mode),
        real=st.integers(0, 3),
        number=st.integers(0, TRIALS),
    )
    def attack(case: Case[Any], real: int, number: int) -> None:
        known: dict[str, Any] = {"study": "coffee", "number": number}
        if real:
            case.path_parameters.update({k: known[k] for k in case.path_parameters})
        before, names = file.read_bytes(), sorted(path.name for path in place.iterdir())
        request = case.as_transport_kwargs(base_url="http://127.0.0.1:8765")
        sent: dict[str, Any] = {
            k: request.get(k) for k in ("method", "url", "headers", "json", "params")
        }
        if isinstance(request.get("data"), bytes | str):
            sent["content"] = request["data"]
        sent["headers"].pop("Authorization", None)
        response = lab.request(**sent)
        assert response.status_code < 500, response.text
        if response.status_code >= 400:
            assert file.read_bytes() == before
            assert sorted(path.name for path in place.iterdir()) == names
            assert response.status_code == 405 or response.json()["error"]
        elif file.read_bytes() != before:
            Optimizer.load(file)
        assert sorted(path.name for path in place.parent.iterdir() if path.name[0] != ".") == around

    if mode is GenerationMode.NEGATIVE and label == "GET /api/studies":
        pytest.skip("it takes nothing that could be wrong")
    around = sorted(path.name for path in place.parent.iterdir() if path.name[0] != ".")
    attack()
