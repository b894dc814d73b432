import torch

from amortes.random import derive_seeds, generator


def test_seeds_depend_on_every_integer_and_their_order() -> None:
    keys = [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 1, 0), (2**32,), (2**64 - 1,)]
    assert len({int(derive_seeds(*key, count=1)[0]) for key in keys}) == len(keys)
    assert (derive_seeds(3, 4, count=5) == derive_seeds(3, 4, count=5)).all()


def test_generators_repeat_and_leave_the_global_one_alone() -> None:
    state = torch.get_rng_state()
    a, b = (torch.rand(3, generator=generator(7, 8)) for _ in range(2))
    assert torch.equal(a, b)
    assert torch.equal(torch.get_rng_state(), state)
