"""Optimising a command: a space in a file, a process per trial, a folder that remembers the run."""
