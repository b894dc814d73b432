from amortes.optimiser import Recommendation


def test_it_is_readable() -> None:
    found = Recommendation({"lr": 0.001, "act": "<relu>"}, 0.6, 0.25, 0.75, 0.9, 0.5)
    assert repr(found) == (
        "Recommendation(lr=0.001, act=<relu>; expected result 0.5, between 0.25 and 0.75 with "
        "probability 90%)"
    )
    assert "&lt;relu&gt;" in found._repr_html_()
    assert "0.25 to 0.75" in found._repr_html_()
