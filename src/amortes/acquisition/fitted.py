"""A network conditioned on one dataset, in the user's units: predictions and scores of points.

    fitted = Fitted(network, X, y, maximise=False)      # conditions once
    fitted.predict(Xq)                                  # distribution of y
    fitted.score("jes", Xq)                             # bigger is better, differentiable in Xq

Scores, with u = y if y is maximised and u = -y otherwise:

    pes, mes, jes   expected information in nats about x*, f*, and both
    ei, logei       E max(z(x) - z(b), 0) and its logarithm, b being the best point observed
    ucb             E z(x) + sqrt(beta) sd z(x)
    mean            E z(x)

z being the network's units (`units`), which are u up to a factor unless the results are warped.

The best point observed is that of the highest posterior mean: with noise the highest observation
is an overestimate (a lucky draw). Improvement is over its value, as uncertain as that is, and about
the function without noise: so evaluating b again, or a point right beside it, improves nothing. To
take z(b) for a known number, the posterior mean, would reward just that, again and again
(docs/log.md). A network that knows one point at a time has no choice.
"""

import copy
import math
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from amortes.acquisition.climb import differentiate
from amortes.acquisition.domain import check_in_cube
from amortes.acquisition.units import Earlier, Units, check_values, choose_units
from amortes.errors import ConfigError, DataError
from amortes.nets.base import GAINS, Hint, Network
from amortes.nets.distributions import GaussianMixture, Predictive
from amortes.nets.distributions.power import hermite

SCORES = (*GAINS, "ei", "logei", "ucb", "mean")


class Fitted:
    """A network and a dataset: X `n x d` in the unit cube, y `n`, X_pending `p x d`; float64.

    Pending points are being evaluated: near them uncertainty counts as reduced already.
    """

    def __init__(
        self,
        network: Network[Any],
        X: Tensor,
        y: Tensor,
        X_pending: Tensor | None = None,
        *,
        maximise: bool = True,
        units: Units | None = None,
        state: Any = None,
    ) -> None:
        if network.training:
            raise ConfigError("the network is in training mode; call `network.eval()` first.")
        check_in_cube(X, "X")
        if len(X) == 0:
            raise DataError(
                "X is empty, but a network needs at least one observation; choose the first "
                "points at random or by a Sobol sequence."
            )
        check_values(y, len(X))
        X_pending = _pending(X_pending, X.shape[-1])
        self.network, self.X, self.y, self.X_pending = network, _inside(X), y.detach(), X_pending
        self.maximise = maximise
        self.units = units or Units.of(self.y, maximise=maximise)
        self.told: tuple[Tensor | None, Tensor | None] | None = None  # the optimum, user's units
        self._hint: Hint | None = None  # the same for the network
        if state is not None:  # somebody has conditioned the network on this already
            self.state = state
            return
        # Also when the caller is in inference mode: a later call may want gradients.
        with torch.inference_mode(False), torch.no_grad():
            pending = None if X_pending is None else X_pending[None]
            z = self.units.to_network(self.y)
            self.state = network.condition(self.X[None], z[None], pending)

    @property
    def d(self) -> int:
        """Number of input dimensions."""
        return self.X.shape[-1]

    def is_to(self, X: Tensor, y: Tensor) -> bool:
        """Whether it is a fit to these results."""
        return torch.equal(self.X, _inside(X)) and torch.equal(self.y, y)

    def with_pending(self, X_pending: Tensor | None) -> "Fitted":
        """The same data with other pending points."""
        other = self._fresh_copy()
        other.X_pending = _pending(X_pending, self.d)
        with torch.inference_mode(False), torch.no_grad():
            pending = None if other.X_pending is None else other.X_pending[None]
            other.state = self.network.with_pending(self.state, pending)
        return other

    def kriging_believer(self) -> "Fitted":
        """The fit if each pending point had given just what is expected of it.

        Improvement depends on the values of pending points, which hyperparameters disagree about;
        this settles it (Ginsbourger et al., Kriging is well-suited to parallelize optimization,
        2010). Gains are those of the kriging believer by themselves, with the same hyperparameters.
        """
        if self.X_pending is None:
            return self
        with torch.no_grad():
            expected = self.posterior_mean(self.X_pending)
        X, y = torch.cat([self.X, self.X_pending]), torch.cat([self.y, expected])
        fitted = Fitted(self.network, X, y, maximise=self.maximise, units=self.units)
        return fitted if self.told is None else fitted.hinted(*self.told)

    def hinted(self, x: Tensor | None = None, f: Tensor | float | None = None) -> Self:
        """The same, told where the optimum is (x, `d`), its value (f, the user's units), or both.

        Predictions and the scores made of them change; there are no gains any more.
        """
        if x is None and f is None:
            raise DataError("a hint needs x, f, or both; both are None.")
        if x is not None:
            check_in_cube(x[None], "x", self.d)
            x = _inside(x)
        if f is not None:
            f = torch.as_tensor(f, dtype=torch.float64).reshape(-1)
            check_values(f, 1)
        told = self._fresh_copy()
        told.told = (x, f)
        told._hint = Hint(
            x=None if x is None else x[None], f=None if f is None else self.units.to_network(f)
        )
        return told

    def _fresh_copy(self) -> Self:
        """A copy without what belongs to predictions that are about to change."""
        other = copy.copy(self)
        for name in ("best", "_best_z", "_order"):
            other.__dict__.pop(name, None)
        return other

    def predict(self, Xq: Tensor) -> Predictive:
        """Distribution of a noisy observation y at Xq, `m x d`: batch shape `m`."""
        return self.units.to_user(self._predict(Xq)[0])

    def latent(self, Xq: Tensor) -> Predictive:
        """Distribution of the function without noise; that of y if the network knows no other."""
        return self.units.to_user(self._latent(Xq))

    def correlation(self, Xq: Tensor, *, noise: bool) -> Tensor | None:
        """Correlations among the q points of each of b batches, `b x q x d`: `b x q x q`.

        Of y with `noise`, of f without; None if the network only knows one point at a time.
        """
        check_in_cube(Xq.flatten(0, 1), "Xq", self.d)
        if self._hint is not None:
            return None
        return self.network.correlation(self.state, Xq, noise=noise)

    @property
    def lengthscale(self) -> Tensor | None:
        """Lengths over which y varies along each coordinate, `d`; None if nobody can say."""
        lengths = self.network.lengthscale(self.state)
        return None if lengths is None else lengths[0]

    @property
    def noise_sd(self) -> float | None:
        """Standard deviation of the noise in y at the best point; None if nobody can tell."""
        if self.noise_share is None:
            return None
        z = self.units.to_network(self.units.value(self._best_z))
        around = self.units.value(
            z + torch.tensor([-0.5, 0.5], dtype=torch.float64) * self.noise_share
        )
        return float((around[1] - around[0]).abs())

    @property
    def noise_share(self) -> float | None:
        """The same in units of the standard deviation of the results."""
        noise = self.network.noise_sd(self.state)
        return None if noise is None else float(noise)

    @property
    def log_evidence(self) -> float | None:
        """Logarithm of the density of y, all hyperparameters considered; None if nobody knows."""
        if not self.network.has_evidence:
            return None
        density = float(self.network.log_evidence(self.state))
        return density + float(self.units.log_slope(self.y).sum())

    def rough_moments(self, Xq: Tensor) -> tuple[Tensor, Tensor] | None:
        """Roughly the mean and standard deviation of z without noise.

        At Xq, `m x d`: `m` each, in a tenth of the time of `latent`; None if the network has no
        faster way.
        """
        check_in_cube(Xq, "Xq", self.d)
        moments = self.network.rough_moments(self.state, Xq[None])
        if moments is None or self._hint is not None:
            return None
        return moments[0][0], moments[1][0]

    def posterior_mean(self, Xq: Tensor) -> Tensor:
        """What is expected of y at Xq, `m x d`: `m`.

        E[y], or if results are warped the y of E[z], which is about the median: of a skewed
        distribution the mean may be far out.
        """
        return self.units.value(self._mean(Xq))

    def _mean(self, Xq: Tensor) -> Tensor:
        """E[z] at Xq: `m`."""
        check_in_cube(Xq, "Xq", self.d)
        z = self.network.mean(self.state, Xq[None]) if self._hint is None else None
        return self._predict(Xq).mean[0] if z is None else z[0]

    def gain_distribution(self, name: str, Xq: Tensor) -> Predictive:
        """Distribution of the information gained at Xq in nats, for pes, mes or jes: `m`."""
        if name not in GAINS:
            raise ConfigError(f"gain: must be one of {', '.join(GAINS)}, not {name!r}.")
        self._check_gain(Xq)
        return self.network.gain(self.state, Xq[None], (name,))[0, :, 0]

    def score(
        self, name: str, Xq: Tensor, *, best: float | None = None, beta: float = 4.0
    ) -> Tensor:
        """How good it is to evaluate Xq, `m x d`: `m`, bigger is better; see the module.

        `best`, in the user's units, replaces the default of ei and logei; `beta` is for ucb.
        """
        if name not in SCORES:
            raise ConfigError(f"score: must be one of {', '.join(SCORES)}, not {name!r}.")
        if name in GAINS:
            self._check_gain(Xq)
            return self.network.expected_gain(self.state, Xq[None], name)[0]
        if name == "mean":
            return self._mean(Xq)
        if name == "ucb":
            check_beta(beta)
            return self._latent(Xq).upper_confidence_bound(beta)
        if best is None and self._hint is None:
            check_in_cube(Xq, "Xq", self.d)
            value = self.network.log_expected_improvement(self.state, Xq[None], self.best_points(1))
            if value is not None:
                return value[0].exp() if name == "ei" else value[0]
        gained = self._improvement(Xq, best)
        zero = torch.zeros((), dtype=torch.float64)
        if name == "ei":
            return gained.expected_improvement(zero)
        return gained.log_expected_improvement(zero)

    def score_with_gradient(self, name: str, Xq: Tensor) -> tuple[Tensor, Tensor]:
        """`score` and its gradient at Xq, `m x d`: `m` and `m x d`, without a graph."""
        found = None
        if name in GAINS:
            self._check_gain(Xq)
            found = self.network.expected_gain_with_gradient(self.state, Xq[None], name)
        elif name == "logei" and self._hint is None:
            check_in_cube(Xq, "Xq", self.d)
            found = self.network.log_expected_improvement_with_gradient(
                self.state, Xq[None], self.best_points(1)
            )
        if found is not None:
            return found[0][0], found[1][0]
        return differentiate(lambda X: self.score(name, X), Xq)

    def _improvement(self, Xq: Tensor, best: float | None) -> Predictive:
        """Distribution of z(x) - `best` or, without it, of z(x) less that of the best point."""
        check_in_cube(Xq, "Xq", self.d)
        if best is not None and not math.isfinite(best):
            raise DataError(f"best: must be finite, not {best}.")
        if best is None and self._hint is None:
            gained = self.network.improvement(self.state, Xq[None], self.best_points(1))
            if gained is not None:
                return gained[0]
        value = self._best_z
        if best is not None:
            value = self.units.to_network(torch.tensor(best, dtype=torch.float64))
        return self._latent(Xq).affine(torch.ones((), dtype=torch.float64), -value)

    def expected_improvement(self, Xq: Tensor) -> Tensor:
        """E max(u(x) - u(b), 0) in the user's units at Xq, `m x d`: `m`.

        If results are warped, each improvement of z counts as that of u from the best on.
        """
        gained = self._improvement(Xq, None)
        zero = torch.zeros((), dtype=torch.float64)
        if self.units.power == 1.0 or not isinstance(gained, GaussianMixture):
            return self.units.sd * self.units.scale * gained.expected_improvement(zero)
        x, w = hermite()
        rise = (gained.means[..., None] + gained.sds[..., None] * x).clamp_min(0.0)
        better, best = self.units.value(self._best_z + rise), self.units.value(self._best_z)
        return (gained.weights[..., None] * w * (better - best).abs()).sum((-1, -2))

    def chance_of_improvement(self, Xq: Tensor) -> Tensor:
        """P(f(x) > f(b)) at Xq, `m x d`, b being the best point observed: `m`."""
        zero = torch.zeros((), dtype=torch.float64)
        return self._improvement(Xq, None).probability_of_improvement(zero)

    @cached_property
    def best(self) -> float:
        """The best posterior mean of y at an observed point."""
        return float(self.units.value(self._best_z))

    @cached_property
    def _best_z(self) -> Tensor:
        with torch.no_grad():
            return self._mean(self.best_points(1))[0]

    def best_points(self, count: int) -> Tensor:
        """Observed points with the best posterior means, best first: at most `count x d`."""
        return self.X[self._order[:count]]

    @cached_property
    def _order(self) -> Tensor:
        """The observed points by their posterior means, best first: `n`."""
        means = self.network.observed_mean(self.state) if self._hint is None else None
        if means is None:
            with torch.no_grad():
                means = self._mean(self.X)[None]
        return means[0].argsort(descending=True, stable=True)

    def _check_gain(self, Xq: Tensor) -> None:
        if self._hint is not None:
            raise ConfigError("there is no gain left once the optimum is told.")
        check_in_cube(Xq, "Xq", self.d)

    def _predict(self, Xq: Tensor) -> Predictive:
        """Distribution of the network's z, `1 x m`."""
        check_in_cube(Xq, "Xq", self.d)
        return self.network.predict(self.state, Xq[None], self._hint)

    def _latent(self, Xq: Tensor) -> Predictive:
        """Distribution of the network's z without noise, `m`."""
        check_in_cube(Xq, "Xq", self.d)
        return self.network.latent(self.state, Xq[None], self._hint)[0]


def fit_warped(
    network: Network[Any],
    X: Tensor,
    y: Tensor,
    *,
    maximise: bool,
    earlier: Fitted | None = None,
) -> Fitted:
    """The network fitted to X, `n x d`, and y, `n`, in the units that explain y best.

    `earlier` is a fit to most of the same results, the first of them; see `units.choose_units`.
    """
    check_in_cube(X, "X")
    known = None
    if earlier is not None:
        first = len(earlier.y)
        same = earlier.is_to(X[:first], y[:first])
        known = Earlier(first if same else 0, earlier.units, earlier.state)
    units, state = choose_units(network, _inside(X), y, maximise=maximise, earlier=known)
    return Fitted(network, X, y, maximise=maximise, units=units, state=state)


def check_beta(beta: float) -> None:
    """Raise ConfigError unless it is a weight that `ucb` can give to variances."""
    if not 0 <= beta < math.inf:
        raise ConfigError(f"beta: must be at least 0 and finite, not {beta}.")


def _pending(X: Tensor | None, d: int) -> Tensor | None:
    """Checked pending points, `p x d`; None if there are none."""
    if X is None:
        return None
    check_in_cube(X, "X_pending", d)
    return _inside(X) if len(X) else None


def _inside(X: Tensor) -> Tensor:
    return X.detach().clamp(0.0, 1.0)
