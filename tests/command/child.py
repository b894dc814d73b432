"""The command line with the small network: `python -m tests.command.child optimize ...`."""

import torch

import amortes.pretrained
from amortes.cli import main
from amortes.prior.gp import named_prior
from tests.optimiser.conftest import untrained

if __name__ == "__main__":
    torch.set_num_threads(1)
    small = untrained(named_prior("robust"))
    setattr(amortes.pretrained, "load_pretrained", lambda name=None: (small, None))  # noqa: B010
    main()
