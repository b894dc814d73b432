"""Functions to be maximised: synthetic ones, tables, real models, draws from a prior."""
