"""A network conditioned on data, as a BoTorch model.

It takes raw data: `bounds` scale the inputs to the unit cube, outcomes are standardised, and the
noise is inferred. Predictions are in the units of the data. Conditioning happens once, when the
model is made.
"""

import copy
from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform, ScalarizedPosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from numpy.typing import ArrayLike
from torch import Tensor

from amortes.acquisition import Fitted
from amortes.acquisition.domain import OUTSIDE
from amortes.errors import ConfigError, DataError
from amortes.integrations.botorch.posterior import PredictivePosterior
from amortes.pretrained import AnyNetwork, as_network


class Surrogate(Model):  # type: ignore[misc]
    """A single-output BoTorch model that takes raw data and needs no fitting.

        model = Surrogate(train_X, train_Y, bounds=bounds)
        candidate, value = optimize_acqf(JES(model), bounds, q=1, num_restarts=4, raw_samples=32)

    train_X: the observed points, `n x d`.
    train_Y: the observed values, `n x 1`.
    network: the network to use: its name, a weights file, or the network itself. By default the
        first one listed by `amortes info`.
    bounds: `2 x d`, lower and upper bounds of the inputs. By default the unit cube.
    maximize: True if larger values are better, as in BoTorch. With False, the acquisition functions
        of amortes look for the minimum. Predictions are of y either way.
    """

    def __init__(
        self,
        train_X: ArrayLike | Tensor,
        train_Y: ArrayLike | Tensor,
        *,
        network: AnyNetwork | None = None,
        bounds: ArrayLike | Tensor | None = None,
        maximize: bool = True,
        **unsupported: Any,
    ) -> None:
        super().__init__()
        if unsupported:
            raise ConfigError(
                f"Surrogate does not take {', '.join(unsupported)}: it scales inputs by `bounds`, "
                "standardises outcomes and infers the noise by itself. Pass raw data."
            )
        self.maximize = maximize
        self._X, y = _as_data(train_X, train_Y)
        self._set_bounds(self._X, bounds)
        self.fitted = Fitted(as_network(network), self.to_unit(self._X), y, maximise=maximize)

    @property
    def num_outputs(self) -> int:
        """One."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """Empty: one dataset."""
        return torch.Size()

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """The observed points, `n x d`, as given."""
        return (self._X,)

    @property
    def train_targets(self) -> Tensor:
        """The observed values, `n`, as given."""
        return self.fitted.y

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> PredictivePosterior:
        """Return the posterior at X, `b x q x d`: of the function, or of y if `observation_noise`.

        A network that cannot tell the two apart always returns the posterior of y.
        """
        if output_indices not in (None, [0], [-1]):
            raise UnsupportedError(
                f"output_indices: a Surrogate has one output, not {output_indices}."
            )
        if not isinstance(observation_noise, bool):
            raise UnsupportedError(
                "observation_noise: must be True or False; the noise level is inferred."
            )
        scale, shift = _affine(posterior_transform)
        points = self.to_unit(X)
        flat = points.reshape(-1, points.shape[-1])
        known = self.fitted.predict(flat) if observation_noise else self.fitted.latent(flat)
        at = known[torch.arange(len(flat)).reshape(X.shape[:-1])].affine(scale, shift)
        correlation = None
        if points.shape[-2] > 1:
            batches = points.reshape(-1, *points.shape[-2:])
            correlation = self.fitted.correlation(batches, noise=observation_noise)
            if correlation is not None:
                correlation = correlation.reshape(*points.shape[:-1], points.shape[-2])
        return PredictivePosterior(at, correlation)

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> "Surrogate":
        """Return a model of the old data and new data X, `n' x d`, and Y, `n' x 1`."""
        if kwargs:
            raise UnsupportedError(f"condition_on_observations does not take {', '.join(kwargs)}.")
        X, y = _as_data(X, Y)
        old, model = self.fitted, copy.copy(self)
        model._X, y = torch.cat([self._X, X]), torch.cat([old.y, y])
        model.fitted = Fitted(old.network, self.to_unit(model._X), y, maximise=self.maximize)
        if old.told is not None:
            model.fitted = model.fitted.hinted(*old.told)
        return model

    def fantasize(self, *args: Any, **kwargs: Any) -> "Surrogate":
        """Not supported: fantasies are a batch of datasets, and a model has one."""
        raise UnsupportedError(
            "a Surrogate does not support fantasize, which look-ahead acquisition functions such "
            "as qKnowledgeGradient need. Use JES, which looks ahead by itself."
        )

    def condition_on_optimum(
        self, x: ArrayLike | Tensor | None = None, f: Tensor | float | None = None
    ) -> "Surrogate":
        """Return the model given the location x of the optimum, `d`, its value f, or both."""
        place = None if x is None else self.to_unit(torch.as_tensor(x).reshape(1, -1)).squeeze(0)
        model = copy.copy(self)
        model.fitted = self.fitted.hinted(place, f)
        return model

    def subset_output(self, idcs: list[int]) -> "Surrogate":
        """Return the model itself, which has one output."""
        if idcs not in ([0], [-1]):
            raise UnsupportedError(f"a Surrogate has one output, not {idcs}.")
        return self

    def to_unit(self, X: Tensor) -> Tensor:
        """Scale points X, `... x d`, to the unit cube, in float64.

        It raises a `DataError` if a point is outside the bounds by more than rounding.
        """
        if X.ndim < 2 or X.shape[-1] != len(self._lower):
            raise DataError(
                f"X must have {len(self._lower)} columns like the training data, with shape n x d "
                f"or b x n x d, not {tuple(X.shape)}."
            )
        if not bool(X.isfinite().all()):
            raise DataError("X must be finite, but contains NaN or infinity.")
        width = self._upper - self._lower
        unit: Tensor = (X.to(torch.float64) - self._lower) / width
        # The data may have been in single precision.
        largest = torch.maximum(self._lower.abs(), self._upper.abs())
        rounding = (torch.finfo(torch.float32).eps * largest / width).clamp_min(OUTSIDE)
        beyond = ((unit < -rounding) | (unit > 1.0 + rounding)).flatten(0, -2).any(0)
        if beyond.any():
            k = int(beyond.nonzero()[0])
            low, high = (float(t) for t in X[..., k].detach().aminmax())
            lower, upper = float(self._lower[k]), float(self._upper[k])
            raise DataError(
                f"column {k} of X has values from {low:.10g} to {high:.10g}, outside its bounds "
                f"{lower:.10g} to {upper:.10g}. Pass `bounds=` that contain all data (the default "
                f"is the unit cube); optimize_acqf may still search a smaller box."
            )
        return unit.clamp(0.0, 1.0)

    def _set_bounds(self, X: Tensor, bounds: Any) -> None:
        d = X.shape[-1]
        if bounds is None:
            bounds = torch.tensor([[0.0], [1.0]]).expand(2, d)
        bounds = torch.as_tensor(bounds)
        if bounds.shape != (2, d):
            raise DataError(
                f"bounds must be 2 x {d} (lower and upper, for each column of train_X), not "
                f"{tuple(bounds.shape)}."
            )
        self._lower, self._upper = bounds.detach().to(torch.float64)
        if not bool((self._lower < self._upper).all() & bounds.isfinite().all()):
            raise DataError(
                f"bounds must be finite, with lower below upper, not {bounds.tolist()}."
            )


def _as_data(X: Any, Y: Any) -> tuple[Tensor, Tensor]:
    """X `n x d` and y `n`, float64, from BoTorch's `n x d` and `n x 1`."""
    X, Y = torch.as_tensor(X), torch.as_tensor(Y)
    if X.ndim != 2 or Y.shape != (len(X), 1):
        raise DataError(
            "Surrogate models one dataset with one outcome: X must be n x d and Y n x 1, not "
            f"{tuple(X.shape)} and {tuple(Y.shape)}."
        )
    return X.detach().to(torch.float64), Y.detach().to(torch.float64).squeeze(-1)


def _affine(transform: PosteriorTransform | None) -> tuple[Tensor, Tensor]:
    """Scale and shift of a posterior transform of one output."""
    if transform is None:
        return torch.ones((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    if not isinstance(transform, ScalarizedPosteriorTransform) or len(transform.weights) != 1:
        raise UnsupportedError(
            "posterior_transform: only a ScalarizedPosteriorTransform with one weight is "
            f"supported, not {type(transform).__name__}."
        )
    return (
        transform.weights[0].to(torch.float64),
        torch.as_tensor(transform.offset, dtype=torch.float64),
    )
