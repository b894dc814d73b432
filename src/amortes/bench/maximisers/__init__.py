"""The paper's maximisers of sample paths, and how they compare with the Newton search."""
