"""Optuna's own suites for samplers."""

from collections.abc import Callable

import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from tests.integrations.optuna.conftest import Make


# They run small spaces beyond their exhaustion, and parameters that are noise to each other.
@pytest.mark.filterwarnings("ignore::amortes.optimiser.AmortesWarning")
class TestAmortesSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self, make: Make) -> Callable[[], BaseSampler]:
        return make
