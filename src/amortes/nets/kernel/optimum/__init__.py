"""Where the optimum may be, and the posterior of f given that it is there."""
