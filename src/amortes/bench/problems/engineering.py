"""Engineering design: BoTorch's problems with constraints or several objectives, as one number.

    u(x) = - 1/3 log sum_i exp(3 z_i(x)) - sum_j log(1 + v_j(x)^2)
    z_i(x) = (f_i(x) - m_i) / s_i,    v_j(x) = 10 max(0, -c_j(x)) / t_j

for objectives f_i, which are to be small, and constraints c_j >= 0. The first term is a smooth
maximum (Chebyshev's scalarisation), a single objective as it is; what violates a constraint is
penalised smoothly (Cauchy's loss: quadratic near the border, slow far from it), so a good design
may violate some a little. m_i are medians, s_i and t_j interquartile ranges, both over 4,096 Sobol
points.

    design-pressure-vessel     4-D   cost of a vessel, four constraints
    design-welded-beam         4-D   cost of a beam, six
    design-spring              3-D   weight of a tension/compression spring, four
    design-speed-reducer       7-D   weight of a gear box, eleven
    design-disc-brake          4-D   mass and stopping time, four
    design-vehicle-safety      5-D   mass, acceleration and intrusion in a crash
    design-car-side-impact     7-D   weight, force on the pelvis, velocity, violations
    design-osy                 6-D   Osyczka and Kundu's problem, two objectives, six constraints

References: the docstrings of BoTorch's classes.
"""

import torch
from torch import Tensor

from amortes.bench.problems.synthetic import botorch_function, sobol_points, within
from amortes.bench.protocol import Kind, Problem

MAXIMUM, BORDER = 3.0, 10.0  # sharpness of the smooth maximum, and of penalties


# Classes of BoTorch, and the highest u, by differential evolution and Nelder-Mead. Three searches
# of 600 generations agreed to 1e-8; on the vessel, where plates come in steps of 1/16 inch, four of
# eight found it, on OSY six.
DESIGNS: dict[str, tuple[str, float]] = {
    "design-pressure-vessel": ("PressureVessel", 0.6504651123744241),
    "design-welded-beam": ("WeldedBeamSO", 0.46978250243693936),
    "design-spring": ("TensionCompressionString", 0.3409877774538076),
    "design-speed-reducer": ("SpeedReducer", 0.9232937021328601),
    "design-disc-brake": ("DiscBrake", 0.17170080141286256),
    "design-vehicle-safety": ("VehicleSafety", 0.752722133930558),
    "design-car-side-impact": ("CarSideImpact", 0.07325917965106121),
    "design-osy": ("OSY", -0.010667989560575065),
}


class Engineering(Problem):
    """One of `DESIGNS`, by name."""

    best: float

    def __init__(self, name: str) -> None:
        self.name = name
        botorch, self.best = DESIGNS[name]
        self._function = botorch_function(botorch)
        self.d = self._function.dim
        objectives, slacks = self._raw(sobol_points(self.d))
        self._centres, self._scales = objectives.quantile(0.5, dim=0), _spread(objectives)
        self._borders = _spread(slacks) if slacks.numel() else slacks[0]

    def value(self, X: Tensor) -> Tensor:
        """The function u at X, `m x d` in the unit cube: `m`."""
        objectives, slacks = self._raw(X)
        z = (objectives - self._centres) / self._scales
        violations = BORDER * (-slacks).clamp(min=0.0) / self._borders
        return -(MAXIMUM * z).logsumexp(1) / MAXIMUM - violations.square().log1p().sum(1)

    def _raw(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Objectives, `m x k`, to be minimised, and slacks of constraints, `m x c`, c may be 0."""
        points = within(self._function.bounds, X)
        objectives: Tensor = self._function(points).reshape(len(X), -1)
        if not hasattr(self._function, "evaluate_slack"):
            return objectives, objectives[:, :0]
        return objectives, self._function.evaluate_slack(points)


def _spread(values: Tensor) -> Tensor:
    """Interquartile ranges of columns, `m x k`: `k`."""
    ends = values.quantile(torch.tensor([0.25, 0.75], dtype=values.dtype), dim=0)
    return ends[1] - ends[0]


KIND = Kind(family="engineering", names=tuple(DESIGNS), make=Engineering, real=tuple(DESIGNS))
