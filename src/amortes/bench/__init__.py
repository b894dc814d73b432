"""Benchmarks: problems, methods of optimisation, sweeps over both, and a report."""
