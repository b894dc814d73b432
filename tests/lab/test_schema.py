"""The API attacked from its own schema: whatever comes in, no 500, and nothing told is lost."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error

from amortes import Optimizer
from amortes.lab.app import create_app
from tests.lab.conftest import COFFEE, TOKEN

schema = schemathesis.pytest.from_fixture("api")
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Host": "127.0.0.1:8765"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")
