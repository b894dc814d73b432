"""Corpora: maximised paths on disk, made once by many processes, to train on again and again."""
