import torch

# pytest-xdist runs one process per core; more threads would only get in each other's way.
torch.set_num_threads(1)
