"""The searcher inside Ray Tune.

`python examples/ray_tune.py`: a function in place of a training run, on a Ray of this machine only.
Some learning rates diverge: such trials fail, and their surroundings are avoided.
"""

import sys
import tempfile
from typing import Any

import ray
from ray import tune

from amortes.integrations.ray import AmortesSearch

SPACE = {
    "lr": tune.loguniform(1e-5, 1.0),
    "layers": tune.randint(1, 9),  # 1 to 8
    "optimiser": {"name": tune.choice(["sgd", "adam"]), "momentum": tune.quniform(0.5, 0.9, 0.1)},
}


def train(config: dict[str, Any]) -> None:
    """Report a loss that falls from epoch to epoch."""
    if config["lr"] > 0.3:
        raise ValueError("the loss diverged")
    optimiser = config["optimiser"]
    best = 1e-3 if optimiser["name"] == "adam" else 1e-2
    for epoch in range(1, 4):
        loss = abs(config["lr"] / best - 1) / (config["lr"] / best + 1)
        loss += 0.05 * abs(config["layers"] - 4) + (0.9 - optimiser["momentum"]) + 1 / epoch
        tune.report({"loss": loss})


def main(num_samples: int = 20) -> None:
    """Tune, and print what was found."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    search = AmortesSearch(seed=0)
    with tempfile.TemporaryDirectory() as folder:
        results = tune.Tuner(
            train,
            param_space=SPACE,
            tune_config=tune.TuneConfig(
                search_alg=search,
                metric="loss",
                mode="min",
                num_samples=num_samples,
                max_concurrent_trials=2,
            ),
            run_config=tune.RunConfig(storage_path=folder, verbose=0),
        ).fit()
        best = results.get_best_result()
        print(f"best of {num_samples}: {best.metrics['loss']:.3f} with {best.config}")
    if search.optimizer is not None:
        print(f"recommended: {search.optimizer.recommend()}")
    ray.shutdown()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
