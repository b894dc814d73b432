"""amortes: amortised entropy search for Bayesian optimisation."""

__version__ = "0.1.0"
