"""Acquisition functions for a `Surrogate`, in closed form: `b x 1 x d -> b`.

PES, MES, JES   expected information about x*, f*, and both
LogEI, EI       expected improvement over the best observed point, whose value is uncertain itself
UCB             mean + sqrt(beta) sd of the function
PosteriorMean   for the final recommendation

Pending points (`X_pending`) are taken into account: they reduce the uncertainty, but have no value
yet (for EI and LogEI, they get the expected one). So `optimize_acqf(..., q=4, sequential=True)`
returns four different points. The value of q > 1 points is that of evaluating them one after the
other, with the earlier ones pending; for information gains, by the chain rule, it is the
information of all of them. It has no gradient.
"""

from typing import Any, ClassVar

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.exceptions.errors import UnsupportedError
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from amortes.acquisition import Fitted
from amortes.acquisition.fitted import check_beta
from amortes.errors import ConfigError, DataError
from amortes.integrations.botorch.surrogate import Surrogate
from amortes.nets.distributions import Predictive


class _Acquisition(AcquisitionFunction):  # type: ignore[misc]
    """What all have in common: the model, its pending points, and a score by name."""

    name: ClassVar[str]
    X_pending: Tensor | None

    def __init__(self, model: Surrogate, X_pending: Tensor | None = None) -> None:
        if not isinstance(model, Surrogate):
            raise ConfigError(
                f"{type(self).__name__} needs an amortes Surrogate, not a {type(model).__name__}."
            )
        super().__init__(model=model)
        self.options: dict[str, Any] = {}  # of the score
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802
        """Set the points that are being evaluated, `p x d`; they replace earlier ones."""
        super().set_X_pending(X_pending)
        self.fitted = self._pending(X_pending)

    def _pending(self, X_pending: Tensor | None) -> Fitted:
        fitted: Fitted = self.model.fitted
        if X_pending is None or not len(X_pending):
            return fitted
        return fitted.with_pending(self.model.to_unit(X_pending))

    @t_batch_mode_transform()  # type: ignore[untyped-decorator]
    def forward(self, X: Tensor) -> Tensor:
        """Return the values at X, `b x q x d`: `b`. For q > 1 they have no gradient."""
        batches = X.reshape(-1, *X.shape[-2:])  # b x q x d
        if X.shape[-2] == 1:
            values = self._score(self.fitted, batches.squeeze(-2))
        elif X.requires_grad:
            raise UnsupportedError(
                f"{type(self).__name__} has no gradient for q > 1 points. Pass `sequential=True` "
                "to optimize_acqf to choose them one after another."
            )
        else:
            values = torch.stack([self._one_by_one(batch) for batch in batches])
        values = values.reshape(X.shape[:-2])
        return values.to(X.dtype) if X.is_floating_point() else values

    def _score(self, fitted: Fitted, X: Tensor) -> Tensor:
        return fitted.score(self.name, self.model.to_unit(X), **self.options)

    def _one_by_one(self, X: Tensor) -> Tensor:
        """Value of `q x d` points, each with those before it pending."""
        pending = X[:0] if self.X_pending is None else self.X_pending.to(X)
        values = []
        for point in X[:, None]:
            values.append(self._score(self._pending(pending), point))
            pending = torch.cat([pending, point])
        return self._join(torch.cat(values))

    def _join(self, values: Tensor) -> Tensor:
        """From the values of q points one after the other, `q`, to that of all of them."""
        return values.sum()


class _Gain(_Acquisition):
    def distribution(self, X: Tensor) -> Predictive:
        """Return the distribution of the gain in nats at X, `b x 1 x d`, with batch shape `b`.

        Its mean is the value of the acquisition function.
        """
        if X.shape[-2] != 1:
            raise DataError(f"X must be b x 1 x d, not {tuple(X.shape)}.")
        return self.fitted.gain_distribution(self.name, self.model.to_unit(X).flatten(0, -2))


class PES(_Gain):
    """Predictive entropy search: expected information about the location of the optimum."""

    name = "pes"


class MES(_Gain):
    """Max-value entropy search: expected information about the value of the optimum."""

    name = "mes"


class JES(_Gain):
    """Joint entropy search: expected information about the location and the value together."""

    name = "jes"


class PosteriorMean(_Acquisition):
    """The posterior mean of the standardised train_Y, negated if the model minimises."""

    name = "mean"

    def _join(self, values: Tensor) -> Tensor:
        return values.amax()


class EI(_Acquisition):
    """Expected improvement of the function over its value at the best observed point.

    If `best_f` is given, in the units of train_Y, it is the improvement over that. The improvement
    itself is in the units of the standardised train_Y.
    """

    name = "ei"

    def __init__(
        self,
        model: Surrogate,
        best_f: Tensor | float | None = None,
        X_pending: Tensor | None = None,
    ) -> None:
        super().__init__(model, X_pending)
        if best_f is not None and torch.as_tensor(best_f).numel() != 1:
            raise DataError(f"best_f: must be one number, not {best_f!r}.")
        self.options = {"best": None if best_f is None else float(best_f)}

    def _pending(self, X_pending: Tensor | None) -> Fitted:
        return super()._pending(X_pending).kriging_believer()


class LogEI(EI):
    """The logarithm of EI, which has a gradient even where EI vanishes."""

    name = "logei"

    def _join(self, values: Tensor) -> Tensor:
        return values.logsumexp(0)


class UCB(_Acquisition):
    """Upper confidence bound of the function: mean + sqrt(beta) sd.

    If the model minimises, it is the lower bound, negated. It is in the units of the standardised
    train_Y.
    """

    name = "ucb"

    def __init__(
        self, model: Surrogate, beta: float = 4.0, X_pending: Tensor | None = None
    ) -> None:
        check_beta(beta)
        super().__init__(model, X_pending)
        self.options = {"beta": beta}

    def _join(self, values: Tensor) -> Tensor:
        return values.amax()


@acqf_input_constructor(PES, MES, JES, PosteriorMean, EI, LogEI, UCB)  # type: ignore[untyped-decorator]
def _inputs(
    model: Surrogate,
    X_pending: Tensor | None = None,
    best_f: Tensor | float | None = None,
    beta: float | None = None,
    posterior_transform: Any = None,
    objective: Any = None,
    constraints: Any = None,
) -> dict[str, Any]:
    """What was given. BoTorch drops, without a word, what an input constructor does not name."""
    refused = (posterior_transform, objective, constraints)
    if any(value is not None for value in refused):
        raise UnsupportedError(
            "posterior_transform, objective and constraints are not supported. A Surrogate has one "
            "outcome, which is maximised, or minimised with `maximize=False`."
        )
    given = {"X_pending": X_pending, "best_f": best_f, "beta": beta}
    return {"model": model} | {name: value for name, value in given.items() if value is not None}
