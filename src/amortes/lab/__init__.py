"""`amortes lab`: a local page on which people run experiments, or watch a program that does.

A study is a run's own JSON file, as `Optimizer.save` writes it; `folder` finds the studies of a
folder, `study` reads and changes one, `api` and `pages` show them. Imported by `amortes lab` only:
it needs the extra `amortes[lab]`.
"""
