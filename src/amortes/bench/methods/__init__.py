"""Methods to compare: ours, Gaussian processes, Optuna's samplers, random search."""
