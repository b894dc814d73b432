from starlette.testclient import TestClient


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
