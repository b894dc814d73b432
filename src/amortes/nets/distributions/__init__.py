"""Predictive distributions of y: what networks return and acquisitions read."""

from amortes.nets.distributions.affine import Affine
from amortes.nets.distributions.base import Predictive
from amortes.nets.distributions.borders import asinh_borders, fit_borders
from amortes.nets.distributions.mixture import GaussianMixture
from amortes.nets.distributions.power import PowerTransformed
from amortes.nets.distributions.riemann import Riemann

__all__ = [
    "Affine",
    "GaussianMixture",
    "PowerTransformed",
    "Predictive",
    "Riemann",
    "asinh_borders",
    "fit_borders",
]
