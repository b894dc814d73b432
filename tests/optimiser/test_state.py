import pytest
import torch

from amortes.errors import FileError
from amortes.nets.kernel import KernelNetwork
from amortes.optimiser.state import FIELDS, FORMAT, VERSION, check_state, fingerprint
from amortes.prior.gp import named_prior
from tests.optimiser.conftest import untrained


def test_a_fingerprint_changes_with_weights_and_prior(network: KernelNetwork) -> None:
    again, other_prior = untrained(named_prior("robust")), untrained(named_prior("paper"))
    assert fingerprint(again) == fingerprint(network)
    assert fingerprint(other_prior) != fingerprint(network)
    with torch.no_grad():
        next(again.parameters()).flatten()[0] += 1e-3
    assert fingerprint(again) != fingerprint(network)


def test_states_are_recognised() -> None:
    state = {"format": FORMAT, "version": VERSION, **dict.fromkeys(FIELDS)}
    assert check_state(state) == state
    with pytest.raises(FileError, match="not the state of an Optimizer"):
        check_state([1, 2])
    with pytest.raises(FileError, match="version 99"):
        check_state(state | {"version": 99})
    del state["trials"]
    with pytest.raises(FileError, match="lacks trials"):
        check_state(state)
