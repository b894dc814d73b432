"""Where to search: a box, perhaps with linear constraints, perhaps with discrete parameters.

    { x :  lower <= x <= upper,  A x <= b,  x = project(x) }

A coordinate is fixed by lower = upper. Moves that end outside are brought back: to the box by
clipping; to A x <= b by cyclic projections onto the violated half-spaces and then, if need be,
along the line towards a point that satisfies them; to discrete values by the caller's `project`.
Points that are all but the same count as the same (`is_among`).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from amortes.errors import DataError

OUTSIDE = 1e-6
"""A point this far outside the cube is taken for one on its surface that was rounded."""
CHUNK = 1024
"""Points scored or compared at once: scores take 60 MB with the kernel network at n = 50."""
SAME = 1e-9
"""Points that differ by no more than this in any coordinate are the same point."""
MARGIN = 1e-9
"""By how much a point may violate A x <= b, in units of the length of a row of A."""
CYCLES = 30
"""Projections onto all half-spaces in turn; what is left over is taken back along a line."""
WALK = 64
"""Steps of hit-and-run from the centre before a point counts as drawn from the polytope."""
STRETCH = 1.5
"""Global points spread over a box up to this much wider, so that many are clipped to faces."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Domain:
    """A set of points; see the module. Made by `Domain.cube` or from bounds `d`."""

    lower: Tensor
    upper: Tensor
    A: Tensor | None = None  # r x d
    b: Tensor | None = None  # r
    project: Callable[[Tensor], Tensor] | None = None  # m x d -> the nearest valid m x d

    @classmethod
    def cube(
        cls,
        d: int,
        *,
        fixed: Mapping[int, float] | None = None,
        A: Tensor | None = None,
        b: Tensor | None = None,
        project: Callable[[Tensor], Tensor] | None = None,
    ) -> "Domain":
        """The unit cube, with some coordinates fixed to values in it."""
        lower = torch.zeros(d, dtype=torch.float64)
        upper = torch.ones(d, dtype=torch.float64)
        for index, value in (fixed or {}).items():
            if not (0 <= index < d and 0.0 <= value <= 1.0):
                raise DataError(
                    f"fixed: cannot fix coordinate {index} to {value}; coordinates are "
                    f"0..{d - 1}, values in [0, 1]."
                )
            lower[index] = upper[index] = value
        return cls(lower=lower, upper=upper, A=A, b=b, project=project)

    def __post_init__(self) -> None:
        if self.lower.ndim != 1 or self.lower.shape != self.upper.shape or not len(self.lower):
            raise DataError(
                "lower and upper must be vectors of equal length, not of shapes "
                f"{tuple(self.lower.shape)} and {tuple(self.upper.shape)}."
            )
        if not bool((self.lower <= self.upper).all()):
            raise DataError("lower must not be above upper, and neither may be NaN.")
        if (self.A is None) != (self.b is None):
            raise DataError("A x <= b needs both A and b.")
        if self.A is None or self.b is None:
            return
        if self.A.shape != (len(self.b), self.d):
            raise DataError(
                f"A must be {len(self.b)} x {self.d} (entries of b x dimensions), not "
                f"{tuple(self.A.shape)}."
            )
        if not bool(self.A.isfinite().all() & self.b.isfinite().all()):
            raise DataError("A and b must be finite.")
        self.centre  # noqa: B018 raises if there is no such point

    @property
    def d(self) -> int:
        """Number of dimensions, with fixed ones."""
        return len(self.lower)

    @cached_property
    def centre(self) -> Tensor:
        """The middle of the box, or the centre of the largest ball in the polytope: `d`."""
        if self.A is None or self.b is None:
            return 0.5 * (self.lower + self.upper)
        free = (self.lower < self.upper).double()
        A = torch.cat([self.A, torch.diag(free), -torch.diag(free)])
        b = torch.cat([self.b, free * self.upper, -free * self.lower])
        radius = (A * free).norm(dim=1, keepdim=True)
        bounds = np.c_[self.lower.numpy(), self.upper.numpy()]
        from scipy.optimize import linprog  # takes most of a second to import

        result: Any = linprog(
            np.r_[np.zeros(self.d), -1.0],
            A_ub=torch.cat([A, radius], dim=1).numpy(),
            b_ub=b.numpy(),
            bounds=[*map(tuple, bounds), (0.0, 1.0)],
        )
        if not result.success or (free.any() and result.x[-1] < 1e3 * MARGIN):
            raise DataError(
                "no point of the box satisfies A x <= b with room to spare; check the signs of A "
                "and b (equalities are not supported: eliminate a parameter)."
            )
        centre: Tensor = torch.from_numpy(result.x[: self.d])
        return centre

    def contains(self, x: Tensor) -> Tensor:
        """Whether points `m x d` satisfy the box and A x <= b: `m`, bool."""
        inside: Tensor = ((x >= self.lower) & (x <= self.upper)).all(-1)
        if self.A is not None and self.b is not None:
            limit = self.b + MARGIN * self.A.norm(dim=1)
            inside = inside & (x @ self.A.mT <= limit).all(-1)
        return inside

    def sample(self, count: int, seed: int) -> Tensor:
        """`count x d` points: low-discrepancy, many on the faces; a pure function of the seed.

        With constraints, half of them are drawn uniformly from the polytope.
        """
        sobol: Any = SobolEngine  # untyped in torch
        U: Tensor = sobol(self.d + 1, scramble=True, seed=seed).draw(count, dtype=torch.float64)
        stretch = 1.0 + STRETCH * U[:, -1:]
        middle, half = 0.5 * (self.lower + self.upper), 0.5 * (self.upper - self.lower)
        x = middle + half * stretch * (2.0 * U[:, :-1] - 1.0)
        if self.A is not None:
            x = torch.cat([x[: count - count // 2], self.walk(count // 2, seed)])
        return self.bring_in(x, self.centre)

    def bring_in(self, x: Tensor, origin: Tensor) -> Tensor:
        """Points `m x d` moved into the domain; `origin` (broadcasts) is in the box and polytope.

        Where `project` rounds a point out of the polytope, it stays there: ask `contains`.
        """
        x = x.clamp(self.lower, self.upper)
        if self.A is not None and self.b is not None:
            x = self._satisfy(x, origin, self.A, self.b)
        if self.project is not None:
            x = self.project(x).clamp(self.lower, self.upper)
        return x

    def _satisfy(self, x: Tensor, origin: Tensor, A: Tensor, b: Tensor) -> Tensor:
        free = (self.lower < self.upper).double()
        rows = A * free  # fixed coordinates do not move
        square = rows.square().sum(1).clamp_min(1e-300)
        # Aim a little inside: the cycles approach their limit from outside.
        target = b - 10 * MARGIN * A.norm(dim=1)
        for _ in range(CYCLES):
            if bool((x @ A.mT <= b).all()):
                return x
            for a, row, limit, length in zip(A, rows, target, square, strict=True):
                x = x - ((x @ a - limit).clamp_min(0.0) / length)[:, None] * row
            x = x.clamp(self.lower, self.upper)
        step = x - origin
        rise = step @ A.mT
        room = (b - origin @ A.mT).clamp_min(0.0)
        share = torch.where(rise > 0, room / rise.clamp_min(1e-300), math.inf).amin(-1)
        return origin + share.clamp_max(1.0)[:, None] * step

    def walk(self, count: int, seed: int) -> Tensor:
        """`count x d` points of the polytope A x <= b by hit-and-run, one chain each."""
        assert self.A is not None
        assert self.b is not None
        rng = torch.Generator().manual_seed(seed)
        eye = torch.eye(self.d, dtype=torch.float64)
        A = torch.cat([self.A, eye, -eye])
        b = torch.cat([self.b, self.upper, -self.lower])
        free = (self.lower < self.upper).double()
        x = self.centre.expand(count, -1)
        for _ in range(WALK):
            direction = torch.randn(count, self.d, generator=rng, dtype=torch.float64) * free
            rise = direction @ A.mT  # count x rows
            reach = (b - x @ A.mT).clamp_min(0.0) / rise
            high = torch.where(rise > 0, reach, math.inf).amin(-1)
            low = torch.where(rise < 0, reach, -math.inf).amax(-1)
            u = torch.rand(count, generator=rng, dtype=torch.float64)
            length = (low + u * (high - low)).nan_to_num(0.0, 0.0, 0.0)  # nothing is free
            x = x + length[:, None] * direction
        return x


def is_among(X: Tensor, points: Tensor | None) -> Tensor:
    """Which rows of `m x d` are one of the points `e x d`: `m`, bool."""
    if points is None or not len(points) or not len(X):
        return torch.zeros(len(X), dtype=torch.bool)
    starts = range(0, len(X), CHUNK)
    near = [torch.cdist(X[i : i + CHUNK], points, p=math.inf).amin(1) <= SAME for i in starts]
    return torch.cat(near)


def check_points(X: Tensor | None, d: int, name: str) -> None:
    """Raise DataError unless X is None or a finite float64 matrix with d columns."""
    if X is None:
        return
    if X.ndim != 2 or X.shape[1] != d or X.dtype != torch.float64:
        raise DataError(
            f"{name} must be a float64 matrix with {d} columns, not {X.dtype} of shape "
            f"{tuple(X.shape)}."
        )
    if not bool(X.isfinite().all()):
        raise DataError(f"{name} must be finite, but has NaN or infinity.")


def check_in_cube(X: Tensor, name: str, d: int | None = None) -> None:
    """Raise DataError unless X is a float64 matrix of points in the unit cube."""
    columns = "d >= 1" if d is None else f"d = {d}"
    if X.ndim != 2 or X.shape[1] == 0 or d not in (None, X.shape[1]):
        raise DataError(
            f"{name} must be a matrix of points with {columns} columns, not of shape "
            f"{tuple(X.shape)}."
        )
    if X.dtype != torch.float64:
        raise DataError(f"{name} must be float64, not {X.dtype}; convert it with `.double()`.")
    if X.numel() == 0:
        return
    low, high = X.detach().aminmax()
    # Written so that NaN fails.
    if not bool((low >= -OUTSIDE) & (high <= 1.0 + OUTSIDE)):
        rows = (~((X >= -OUTSIDE) & (X <= 1.0 + OUTSIDE))).any(1).nonzero().flatten().tolist()
        raise DataError(
            f"{name} must be in the unit cube, but rows {rows[:10]} are not (or are NaN): values "
            f"from {float(low):g} to {float(high):g}. Rescale each column by its bounds."
        )
