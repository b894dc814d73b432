"""Choose from a list of candidates: `python examples/finite_pool.py`.

A pool is all there is: here the 178 wines of UCI's wine data, which come with scikit-learn. Which
of them has the most proline, if only five cheaper properties are known in advance and each
measurement of proline costs one evaluation?
"""

import sys

from sklearn.datasets import load_wine

from amortes import Float, Optimizer, Space

KNOWN = ["alcohol", "ash", "flavanoids", "color_intensity", "hue"]


def main(n_trials: int = 25) -> None:
    """Measure the most promising wines, and print how close the best one comes."""
    data = load_wine()
    columns = [data.feature_names.index(name) for name in KNOWN]
    proline = dict(enumerate(data.data[:, -1].tolist()))
    table = data.data[:, columns]
    parameters = {
        name: Float(low, high)
        for name, low, high in zip(KNOWN, table.min(0), table.max(0), strict=True)
    }
    pool = [dict(zip(KNOWN, row, strict=True)) for row in table.tolist()]
    optimizer = Optimizer(Space(parameters, pool=pool), goal="maximize", seed=0)
    for _ in range(n_trials):
        trial = optimizer.ask()
        optimizer.tell(trial, proline[pool.index(trial.config)])
    best = optimizer.best
    rank = sorted(proline.values(), reverse=True).index(best.value) + 1
    print(f"best of {n_trials} measured wines: {best.value:.0f}, number {rank} of {len(pool)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
