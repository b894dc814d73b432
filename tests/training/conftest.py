import pytest

from amortes.prior.tasks import TaskBatch, TaskStream
from amortes.training.recipes import build_network
from tests.training.fake import FakeConfig, FakeNetwork, fake_recipe


@pytest.fixture
def network() -> FakeNetwork:
    built = build_network("fake", FakeConfig(), fake_recipe().prior, seed=1)
    assert isinstance(built, FakeNetwork)
    return built


@pytest.fixture(scope="session")
def task() -> TaskBatch:
    """A batch of 4 datasets with 5 points and 5 queries in 2 dimensions."""
    recipe = fake_recipe()
    return TaskStream(recipe.prior, 7, recipe.tasks).batch_of(3, 2, 5)
