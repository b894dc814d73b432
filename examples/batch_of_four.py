"""Four evaluations at a time: `python examples/batch_of_four.py`.

`ask(4)` gives four configs that complement each other, as each is chosen knowing where the others
will be evaluated. They run in processes here; any other way of evaluating will do.
"""

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from amortes import Float, Optimizer


def experiment(config: dict[str, float]) -> float:
    """Some slow measurement; the best is 1 at a = 0.3, b = 0.8."""
    time.sleep(0.05)
    return 1.0 - (config["a"] - 0.3) ** 2 - 2.0 * (config["b"] - 0.8) ** 2


def main(n_trials: int = 24) -> None:
    """Optimise in batches, and print the best after each."""
    optimizer = Optimizer({"a": Float(0, 1), "b": Float(0, 1)}, goal="maximize", seed=0)
    # Not forked: torch has threads that do not survive it.
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        while (left := n_trials - len(optimizer.trials)) > 0:
            batch = optimizer.ask(min(4, left))
            values = pool.map(experiment, [trial.config for trial in batch])
            for trial, value in zip(batch, values, strict=True):
                optimizer.tell(trial, value)
            print(f"{len(optimizer.trials):3} evaluations, best {optimizer.best.value:.4f}")
    print(f"recommended: {optimizer.recommend().config}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
