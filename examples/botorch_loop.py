"""The surrogate and JES inside a BoTorch loop: `python examples/botorch_loop.py`.

Needs `pip install amortes[botorch]`.
"""

import sys

import torch
from botorch.optim import optimize_acqf
from botorch.test_functions import Branin
from botorch.utils.sampling import draw_sobol_samples

from amortes import JES, PosteriorMean, Surrogate


def main(n_trials: int = 25) -> None:
    """Maximise -Branin with noise, and print the regret of the recommended point."""
    problem = Branin(noise_std=1.0, negate=True, dtype=torch.float64)
    bounds = problem.bounds
    train_X = draw_sobol_samples(bounds, n=4, q=1, seed=0).squeeze(1).double()
    train_Y = problem(train_X).unsqueeze(-1)
    while len(train_X) < n_trials:
        model = Surrogate(train_X, train_Y, bounds=bounds)
        x, _ = optimize_acqf(JES(model), bounds, q=1, num_restarts=10, raw_samples=128)
        train_X = torch.cat([train_X, x])
        train_Y = torch.cat([train_Y, problem(x).unsqueeze(-1)])
    mean = PosteriorMean(Surrogate(train_X, train_Y, bounds=bounds))
    x, _ = optimize_acqf(mean, bounds, q=1, num_restarts=10, raw_samples=128)
    regret = problem.optimal_value - float(problem(x, noise=False))
    print(f"recommended after {n_trials} evaluations: {x.squeeze().tolist()}, regret {regret:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    main(*map(int, sys.argv[1:]))
