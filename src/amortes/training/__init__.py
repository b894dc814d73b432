"""Two-stage training.

`recipes` say what to learn, `loop.train` learns it in a run folder, `export` makes one file of it.
"""
