import re

import pytest
from starlette.testclient import TestClient

from amortes.lab.assets import ADDRESS, HERE


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
