"""Random numbers as pure functions of integers.

Nothing in amortes touches a global generator. A stream of work is identified by a few integers
(seed, step, ...); the same integers give the same numbers in any process, on any worker.
"""

import hashlib

import numpy as np
import torch


def derive_seeds(*key: int, count: int) -> np.ndarray:
    """`count` well-mixed 64-bit seeds that depend on all integers of `key` and their order.

    The integers are in 0..2^64-1.
    """
    # SeedSequence joins 32-bit words and ignores trailing zeros: fix the number of words.
    words = [word for k in key for word in (k & 0xFFFFFFFF, k >> 32)]
    return np.random.SeedSequence([len(key), *words]).generate_state(count, np.uint64)


def hashed(name: str) -> int:
    """64 bits that depend on all of a name, for keys."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])


def generator(*key: int) -> torch.Generator:
    """A torch generator seeded from all integers of `key`."""
    return torch.Generator().manual_seed(int(derive_seeds(*key, count=1)[0] >> np.uint64(1)))
