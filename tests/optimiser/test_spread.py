import pytest

from amortes.optimiser.spread import spread


def test_the_standard_deviation() -> None:
    assert spread([1.0, 2.0, 3.0, 4.0], maximise=False) == pytest.approx(1.25**0.5)
    assert spread([1.0, 1.0, 1.0, 1.0, 5.0], maximise=False) == 1.6
    assert spread([7.0], maximise=True) == 0.0


@pytest.mark.parametrize("maximise", [False, True])
def test_terrible_results_do_not_count_but_excellent_ones_do(maximise: bool) -> None:
    terrible = -1e30 if maximise else 1e30
    values = [1.0, 2.0, 3.0, 4.0]
    assert spread([*values, terrible], maximise=maximise) == pytest.approx(1.25**0.5)
    assert spread([*values, -terrible], maximise=maximise) > 1e29
