"""Predictive distributions of y: what networks return and acquisitions read."""

from amortes.nets.distributions.base import Predictive
from amortes.nets.distributions.mixture import GaussianMixture
from amortes.nets.distributions.power import PowerTransformed
from amortes.nets.distributions.riemann import Riemann, asinh_borders, fit_borders

__all__ = [
    "GaussianMixture",
    "PowerTransformed",
    "Predictive",
    "Riemann",
    "asinh_borders",
    "fit_borders",
]
