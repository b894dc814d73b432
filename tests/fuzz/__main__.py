"""`python -m tests.fuzz COUNT [SEED]`: inputs of a new seed, or of the one given."""

import secrets
import sys

import torch

from tests.fuzz.run import fuzz


def main() -> int:
    torch.set_num_threads(1)
    count, *rest = map(int, sys.argv[1:])
    seed = rest[0] if rest else secrets.randbelow(10**6)
    counts, defects = fuzz(seed, count)
    for name, times in sorted(counts.items()):
        print(f"{times:7d}  {name}")
    for defect in defects[:20]:
        print(f"\n{defect}")
    print(f"\n{len(defects)} defects in {count} inputs of seed {seed}")
    return min(len(defects), 1)


if __name__ == "__main__":
    sys.exit(main())
