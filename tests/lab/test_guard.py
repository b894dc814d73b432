from pathlib import Path

import pytest
from starlette.testclient import TestClient

from amortes.lab import guard
from amortes.lab.app import create_app
from tests.lab.conftest import COFFEE, TOKEN

BASE = "http://127.0.0.1:8765"


@pytest.fixture
def stranger(tmp_path: Path) -> TestClient:
    """A client without the token."""
    return TestClient(create_app(tmp_path, token=TOKEN), base_url=BASE)


@pytest.mark.parametrize("path", ["/", "/new", "/static/lab.css", "/api/studies", "/nothing"])
def test_without_the_token_there_is_nothing(stranger: TestClient, path: str) -> None:
    answers = [
        stranger.get(path),
        stranger.get(path, headers={"Authorization": "Bearer wrong"}),
        stranger.get(path, headers={"Authorization": f"Basic {TOKEN}"}),
        stranger.get(f"{path}?token=wrong"),
        stranger.get(path, headers={"Cookie": "amortes-lab-8765=wrong"}),
        stranger.get(path, headers={"Cookie": f"amortes-lab-80={TOKEN}"}),
    ]
    assert {answer.status_code for answer in answers} == {401}


def test_the_address_with_the_token_opens_the_pages(stranger: TestClient) -> None:
    entering = stranger.get(f"/?token={TOKEN}")
    cookie = entering.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in entering.text
    assert stranger.get("/").status_code == 200
    assert stranger.get("/api/studies").json() == []


@pytest.mark.parametrize(
    "host", ["evil.example:8765", "127.0.0.1.evil.example", "", "a:b:c", "127.0.0.1:port", "[::1"]
)
def test_other_names_of_this_address_are_refused(client: TestClient, host: str) -> None:
    assert client.get("/api/studies", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:1", "[::1]:8765", "192.168.0.7"])
def test_addresses_are_fine(client: TestClient, host: str) -> None:
    assert client.get("/api/studies", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_others_change_nothing(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/api/studies", json=COFFEE, headers=headers).status_code == 403
    assert client.get("/api/studies").json() == []


def test_our_own_pages_may(client: TestClient) -> None:
    headers = {"Origin": BASE, "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/studies", json=COFFEE, headers=headers).status_code == 201


def test_no_other_site_may_read_or_frame(client: TestClient) -> None:
    answer = client.get("/", headers={"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_large_requests_are_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "LARGEST", 1000)
    assert client.post("/api/studies", json={"name": "x" * 2000}).status_code == 413

    def pieces() -> object:
        yield from [b'{"name": "'] + [b"x" * 100] * 20

    answer = client.post("/api/studies", content=pieces())  # type: ignore[arg-type]
    assert answer.status_code in (400, 413)
    assert client.get("/api/studies").json() == []
