import pytest

from amortes.training.meter import SMOOTHING, Meter


def test_means_over_the_steps_that_had_the_metric() -> None:
    meter = Meter()
    meter.add({"loss": 1.0, "a": 2.0}, 0.1)
    meter.add({"loss": 3.0}, 0.1)
    meter.add({"loss": 5.0, "a": 4.0}, 0.1)
    assert meter.flush() == {"loss": 3.0, "a": 3.0}
    assert meter.flush() == {}


def test_smoothing_is_not_biased_by_the_start() -> None:
    meter = Meter()
    meter.add({"loss": 2.0}, 0.5)
    assert meter.loss == pytest.approx(2.0)
    assert meter.seconds == pytest.approx(0.5)
    meter.add({"loss": 4.0}, 0.5)
    assert meter.loss == pytest.approx((2.0 * SMOOTHING + 4.0) / (SMOOTHING + 1.0))
