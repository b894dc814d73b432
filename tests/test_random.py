import torch

from amortes.random import derive_seeds, generator, hashed


def test_seeds_depend_on_every_integer_and_their_order() -> None:
    keys = [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 1, 0), (2**32,), (2**64 - 1,)]
    assert len({int(derive_seeds(*key, count=1)[0]) for key in keys}) == len(keys)
    assert (derive_seeds(3, 4, count=5) == derive_seeds(3, 4, count=5)).all()


def test_generators_repeat_and_leave_the_global_one_alone() -> None:
    state = torch.get_rng_state()
    a, b = (torch.rand(3, generator=generator(7, 8)) for _ in range(2))
    assert torch.equal(a, b)
    assert torch.equal(torch.get_rng_state(), state)


def test_names_as_keys() -> None:
    keys = [hashed(name) for name in ("", "branin", "branin2", "2branin")]
    assert len(set(keys)) == 4
    assert all(0 <= key < 2**64 for key in keys)
    # The first 16 digits of `printf branin | sha256sum`.
    assert f"{keys[1]:016x}" == "dd917709df43d67b"
