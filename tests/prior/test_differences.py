from amortes.prior.differences import differences


def test_every_leaf_that_differs_has_a_line() -> None:
    old = {"rate": 0.1, "inner": {"low": 1, "high": 5}, "sizes": [1, 2]}
    new = {"rate": 0.2, "inner": {"low": 1, "high": 9}, "sizes": [1, 2]}
    assert differences(old, old) == []
    assert differences(old, new) == ["rate: 0.1 -> 0.2", "inner.high: 5 -> 9"]
    assert differences(old, new, "{} was {}, is {}")[1] == "inner.high was 5, is 9"
    assert differences({"a": 1}, {"b": {"c": 1}}) == ["a: 1 -> None", "b: None -> {'c': 1}"]
