"""The curves of the alpha-PFN paper, under the names of our results.

Rakotoarison et al., "α-PFN: Fast Entropy Search via In-Context Learning" (ICML 2026). Means and
standard errors over seeds, which we read off the coordinates of the vector figures in plot_results/
of github.com/automl/AlphaPFN (branch icml2026): measurements of published figures, not files of
that repository. log10 inference regret to three decimals, accuracy in per cent to two.

Methods are called `paper:jes` (the alpha-PFN), `paper:fb-jes` (its fully Bayesian GP) and
`paper:jes@uniform` (its trace ablation); why Ackley is `-near`, `problems.synthetic` says.
"""

from importlib.resources import as_file, files

import pandas as pd

SEEDS = 30  # behind each of the curves


def load_published() -> pd.DataFrame:
    """Curves, as in `curves`."""
    with as_file(files("amortes.bench") / "data" / "paper-curves.csv.gz") as path:
        return pd.read_csv(path).assign(samples=float(SEEDS))
