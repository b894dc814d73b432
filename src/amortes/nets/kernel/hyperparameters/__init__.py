"""The posterior over hyperparameters, as a few weighted particles."""
