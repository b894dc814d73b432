"""What a gain network reads: of pairs of particles, and of queries under each particle.

Where the optimum may be is told by m representer points r, with the share of joint draws of f in
which r is the highest. How high it may be is told by the mean of the maximum of the draws over all
particles, or the mean of f(r) if that is higher: F_r.

With the posterior correlation ρ of f(x) and f(r), what f(r) = F_r would leave of f(x) is textbook:
with the standardised surprise g of f(r), and e that of f(x) = F_r,

    left = 1 - ρ^2,   z = (e - ρ g) / sqrt(left),   then f(x) <= F_r truncates a normal at z,

whose hazard λ and variance w are in `distributions.normal`. Features are averages over the points,
by shares, of

    left w (what is left of the variance), ρ g - sqrt(left) λ (the shift of the mean, in sds),

of |ρ| and ρ^2, and of the prior correlation κ, its square root and its logarithm; then some of f(x)
by itself and of the dataset. Derivatives are by hand, in NumPy (`numpy_kernels` says why): a search
asks for some ten gradients.

Of two particles the features are how much they differ in hyperparameters, in f at the points, in
the shares of these, and in the maximum.

Shapes: b datasets, k particles, m representer points, q queries, n observations, d dimensions, P
and F features.

References: Wang & Jegelka, Max-value entropy search, ICML 2017 (truncation); Hvarfner et al., Joint
entropy search, NeurIPS 2022 (conditioning on f(r), too).
"""

import math
from collections.abc import Callable

import numpy as np
import torch

from amortes import linalg
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR, Conditioned
from amortes.nets.kernel.numpy_kernels import Array, KernelWith, PullBack
from amortes.nets.kernel.optimum.representers import JointDraws

# Correlations are this close to 1 at most, and surprises and truncations this many sds away.
CLOSEST, FURTHEST = 0.9999, 8.0
SURPRISE = 6.0
# Least prior correlation, of which the logarithm is taken, and least odds.
SMALLEST, LEAST_ODDS = 1e-11, 1e-4
# Least weight of a particle, least share of a point, and least sd of a maximum.
LEAST_WEIGHT, LEAST_SHARE, LEAST_SD = 1e-6, 1e-9, 1e-6
ROOT = math.sqrt(2.0 / math.pi)

NUM_QUERY = 7 + 5 + 11
NUM_PAIR = 2 * 12 + 2 + 5


PullBacks = Callable[[Array], tuple[Array, ...]]
"""Derivatives by features -> those by each of what they are made of."""


class GainFeatures:
    """Of one conditioned dataset; everything that all queries share."""

    def __init__(self, conditioned: Conditioned, draws: JointDraws) -> None:
        hyper, found = conditioned.particles.hyper, draws.representers
        self.conditioned = conditioned
        known = torch.cat([conditioned.V, found.moments.V], dim=2).numpy()
        self.kernel = KernelWith(conditioned.prior, hyper, known)
        self.signal, self.roughness = self.kernel.signal[..., 0], self.kernel.roughness[..., 0]
        self.noise = conditioned.noise_variance.numpy()[..., None]  # b x k x 1
        self.weights = conditioned.weights.numpy()[..., None]  # b x k x 1
        self.whitener = conditioned.whitener.numpy()  # b x k x n x n
        self.coefficients = conditioned.coefficients.numpy()[..., None]  # b x k x n x 1
        self.prior_variance = conditioned.prior_variance.numpy()[..., None]  # b x k x 1
        self.whitened = found.moments.whitened.numpy()  # b x k x n x m
        self.at_point = found.moments.mean.numpy()[..., None]  # b x k x m x 1
        self.sd_point = found.moments.sd.numpy()[..., None]
        self.share = found.share.numpy()  # b x k x m
        self.max_mean = draws.maximum.mean(-1).numpy()[..., None]  # b x k x 1
        self.max_sd = draws.maximum.std(-1).clamp_min(LEAST_SD).numpy()[..., None]
        self.top = (self.weights * self.max_mean).sum(1, keepdims=True)  # b x 1 x 1
        spread = np.square(self.max_sd) + np.square(self.max_mean - self.top)
        self.top_variance = (self.weights * spread).sum(1, keepdims=True)
        together = (self.weights * self.share).sum(1, keepdims=True)
        together = together / together.sum(-1, keepdims=True)
        self.height = np.maximum(self.top[..., None], self.at_point)  # F, b x k x m x 1
        surprise = (self.height - self.at_point) / self.sd_point
        self.surprise = np.minimum(surprise, SURPRISE)  # g
        self.shared = self._shared(together)  # b x k x 11

    def _shared(self, together: Array) -> Array:
        """Features that all queries have, `b x k x 11`."""
        signal, rough = self.signal, self.roughness
        n, d = self.conditioned.X.shape[1:]
        number = 1.0 / np.square(self.weights).sum(1, keepdims=True)
        relative = (self.max_mean - self.top) / np.sqrt(self.top_variance)
        parts = (
            np.full_like(signal, math.log(d)),
            np.full_like(signal, math.log(n)),
            np.log(np.square(self.max_sd) / signal),
            0.5 * np.log(self.noise / signal),
            np.log(self.top_variance / signal),
            _entropy(together),
            _entropy(self.share),
            rough,
            np.log(np.maximum(self.weights, LEAST_WEIGHT)),
            np.log(number),
            np.clip(relative, -SURPRISE, SURPRISE),
        )
        return np.concatenate([np.broadcast_to(part, signal.shape) for part in parts], axis=-1)

    def pairs(self) -> Array:
        """Of all pairs of particles: `b x k x k x P`."""
        hyper = self.conditioned.particles.hyper.with_identity_warp()
        assert hyper.warp is not None
        lengths, warp = hyper.lengthscale.numpy(), hyper.warp.numpy()
        rough = np.clip(self.roughness, LEAST_ODDS, 1.0 - LEAST_ODDS)
        log_signal, log_noise = np.log(self.signal), np.log(self.noise)
        of_points = _bhattacharyya(self.at_point[..., 0], self.sd_point[..., 0])
        chance = 0.5 * (self.share[:, :, None] + self.share[:, None])
        common = np.sqrt(self.share[:, :, None] * self.share[:, None]).sum(-1)
        square_sd = np.square(self.max_sd)
        apart = _square(self.max_mean) / (square_sd + square_sd.swapaxes(1, 2))
        distances = (
            _square(np.log(lengths)),
            _square(np.log1p(lengths**-2)),
            _square(log_signal),
            _square(0.5 * log_noise),
            _square(_logit(rough)),
            _square(warp[..., 0, :]),
            _square(warp[..., 1, :]),
            (chance * of_points).sum(-1),
            _bhattacharyya(self.max_mean, self.max_sd).sum(-1),
            -np.log(common + LEAST_WEIGHT),
            apart,
            _square(np.log(self.max_sd)),
        )
        distance = np.maximum(np.stack(distances, axis=-1), 0.0)
        log_weight = np.log(np.maximum(self.weights, LEAST_WEIGHT))  # b x k x 1
        other = log_weight.swapaxes(1, 2)
        of_weights = np.stack([log_weight + other, np.abs(log_weight - other)], axis=-1) / 5.0

        def average(of_particles: Array) -> Array:
            total: Array = (self.weights * of_particles).sum(1, keepdims=True)
            return total[..., None]

        n, d = self.conditioned.X.shape[1:]
        of_all = (
            np.full((1, 1, 1, 1), math.log(d)),
            np.full((1, 1, 1, 1), math.log(n)),
            average(0.5 * (log_noise - log_signal)),
            average(np.log(square_sd) - log_signal),
            average(self.weights),
        )
        shape = (*distance.shape[:-1], 1)
        shared = [np.broadcast_to(part, shape) for part in of_all]
        return np.concatenate([np.sqrt(distance), np.log1p(distance), of_weights, *shared], axis=-1)

    def forward(self, X: Array) -> tuple[tuple[Array, Array, Array], PullBack]:
        """Features `b x k x q x F`, mean and variance `b x k x q` at X, `b x q x d`.

        And how derivatives by these become those by X. The first two features are textbook: the
        log odds of what is left of the variance, and the shift of the mean in sds.
        """
        n = self.whitener.shape[-1]
        (K, value), pull_back_kernel = self.kernel.forward(X)  # b x k x (n + m) x q
        whitened = linalg.lower_times(self.whitener, K[..., :n, :])
        mean = (self.coefficients.swapaxes(-1, -2) @ K[..., :n, :])[..., 0, :]
        mean += self.conditioned.prior.mean.loc
        floor = VARIANCE_FLOOR * self.prior_variance
        known = self.prior_variance - np.square(whitened).sum(-2)
        variance = np.maximum(known, floor)
        sd = np.sqrt(variance)
        cov = K[..., n:, :] - self.whitened.swapaxes(-1, -2) @ whitened  # b x k x m x q
        scale = sd[:, :, None] * self.sd_point
        pooled, pull_back_pooled = self._pooled(mean, sd, cov / scale, value[..., n:, :])
        single, pull_back_single = self._single(mean, variance)
        shape = (*mean.shape, self.shared.shape[-1])
        shared = np.broadcast_to(self.shared[:, :, None], shape)
        features = np.concatenate([pooled, single, shared], axis=-1)

        def pull_back(by_features: Array, by_mean: Array, by_variance: Array) -> Array:
            p = pooled.shape[-1]
            by_m, by_sd, by_rho, by_prior = pull_back_pooled(by_features[..., :p])
            by_m1, by_v1 = pull_back_single(by_features[..., p : p + single.shape[-1]])
            by_cov = by_rho / scale
            by_sd = by_sd - (by_cov * cov).sum(2) / sd
            by_mean = by_mean + by_m + by_m1
            by_variance = (by_variance + by_v1 + 0.5 * by_sd / sd) * (known >= floor)
            by_white = -2.0 * by_variance[..., None, :] * whitened - self.whitened @ by_cov
            by_K = self.whitener.swapaxes(-1, -2) @ by_white
            by_K += self.coefficients * by_mean[..., None, :]
            by_points = by_cov + by_prior / self.kernel.signal
            return pull_back_kernel(np.concatenate([by_K, by_points], axis=-2))

        return (features, mean, variance), pull_back

    def _pooled(self, mean: Array, sd: Array, rho: Array, prior: Array) -> tuple[Array, PullBacks]:
        """Averages over points of what correlations `b x k x m x q` say: `b x k x q x 7`."""
        inside = np.abs(rho) < CLOSEST
        rho = np.clip(rho, -CLOSEST, CLOSEST)
        kappa = np.clip(prior, SMALLEST, 1.0)
        square = np.square(rho)
        left = 1.0 - square
        root = np.sqrt(left)
        e = (self.height - mean[:, :, None]) / sd[:, :, None]
        z0 = (e - rho * self.surprise) / root
        z = np.clip(z0, -FURTHEST, FURTHEST)
        hazard, distance, width = _cut_off(z)
        half = np.sqrt(kappa)
        parts = (
            left * width,
            rho * self.surprise - root * hazard,
            square,
            np.abs(rho),
            kappa,
            half,
            np.log(kappa),
        )
        share = self.share[:, :, None]  # b x k x 1 x m
        features = np.stack([(share @ part)[:, :, 0] for part in parts], axis=-1)
        rest = np.clip(features[..., 0], LEAST_ODDS, 1.0 - LEAST_ODDS)
        free = rest == features[..., 0]
        features[..., 0] = _logit(rest)

        def pull_back(by_features: Array) -> tuple[Array, Array, Array, Array]:
            by = np.moveaxis(by_features, -1, 0).copy()  # 7 x b x k x q
            by[0] *= free / (rest * (1.0 - rest))
            of = by[:, :, :, None] * self.share[..., None]  # 7 x b x k x m x q
            by_width, by_hazard = left * of[0], -root * of[1]
            by_left = width * of[0] - 0.5 * hazard / root * of[1]
            by_rho = self.surprise * of[1] + np.sign(rho) * of[3]
            by_kappa = of[4] + 0.5 / half * of[5] + of[6] / kappa
            # dλ/dz = -λδ and dw/dz = λ (δ^2 - w).
            by_z = hazard * (by_width * (np.square(distance) - width) - by_hazard * distance)
            by_z *= np.abs(z0) < FURTHEST
            by_e = by_z / root
            by_rho -= by_e * self.surprise
            by_left -= 0.5 * by_z * z / left
            by_rho += 2.0 * rho * (of[2] - by_left)
            by_rho *= inside
            by_kappa *= (prior > SMALLEST) & (prior < 1.0)
            by_sum = by_e.sum(2)
            return -by_sum / sd, -(by_e * e).sum(2) / sd, by_rho, by_kappa

        return features, pull_back

    def _single(self, mean: Array, variance: Array) -> tuple[Array, PullBacks]:
        """What mean and variance say by themselves: `b x k x q x 5`."""
        sd, total = np.sqrt(variance), np.sqrt(variance + self.top_variance)
        gap = self.top - mean
        z = np.clip(gap / sd, -FURTHEST, FURTHEST)
        hazard, distance, width = _cut_off(z)
        above = (self.max_mean - self.top) / sd
        told = variance + self.noise
        parts = (
            gap / total,
            width,
            variance / told,
            np.log(variance / self.signal),
            np.clip(above, -FURTHEST, FURTHEST),
        )

        def pull_back(by_features: Array) -> tuple[Array, Array]:
            by_gap, by_width, by_share, by_log, by_above = np.moveaxis(by_features, -1, 0)
            by_z = by_width * hazard * (np.square(distance) - width)
            by_z = by_z * (np.abs(gap / sd) < FURTHEST) / sd
            by_sd = -by_z * z - by_above * (np.abs(above) < FURTHEST) * above / sd
            by_variance = -0.5 * by_gap * gap / total**3 + by_share * self.noise / np.square(told)
            by_variance += by_log / variance + 0.5 * by_sd / sd
            return -by_gap / total - by_z, by_variance

        return np.stack(parts, axis=-1), pull_back


def _cut_off(z: Array) -> tuple[Array, Array, Array]:
    """`distributions.normal.cut_off` where |z| is at most `FURTHEST`, in a third of the time."""
    hazard: Array = ROOT / torch.special.erfcx(torch.from_numpy(-math.sqrt(0.5) * z)).numpy()
    distance = hazard + z
    return hazard, distance, 1.0 - hazard * distance


def _square(of_particles: Array) -> Array:
    """Squared distances of vectors `b x k x c`: `b x k x k`."""
    square: Array = np.square(of_particles[:, :, None] - of_particles[:, None]).sum(-1)
    return square


def _bhattacharyya(mean: Array, sd: Array) -> Array:
    """Distances of normal distributions `b x k x c`: `b x k x k x c`."""
    total = np.square(sd)[:, :, None] + np.square(sd)[:, None]
    away = np.square(mean[:, :, None] - mean[:, None]) / total
    distance: Array = 0.25 * away + 0.5 * np.log(total / (2.0 * sd[:, :, None] * sd[:, None]))
    return distance


def _entropy(shares: Array) -> Array:
    entropy: Array = -(shares * np.log(shares + LEAST_SHARE)).sum(-1, keepdims=True)
    return entropy


def _logit(p: Array) -> Array:
    odds: Array = np.log(p / (1.0 - p))
    return odds
