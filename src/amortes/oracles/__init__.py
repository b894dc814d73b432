"""Slow and trustworthy answers that tell how good the networks are."""
