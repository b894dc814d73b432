"""Networks: predictive distributions, the per-cell transformer, the kernel network."""
