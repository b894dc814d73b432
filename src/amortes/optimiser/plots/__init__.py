"""Figures of a run, for papers, slides and notebooks."""
