"""Methods to compare: ours, Gaussian processes, Optuna's samplers, SMAC, random search."""
