import dataclasses
import math

import pytest
import torch
from torch import Tensor

from amortes.nets.kernel.conditioning import Conditioned, Moments, condition
from amortes.nets.kernel.known import Known
from amortes.nets.kernel.particles import ParticleConfig, infer_particles
from amortes.nets.kernel.peak import Peak, peak_at
from amortes.nets.kernel.rivals import Rivals
from amortes.prior.gp import PRIORS, GPPrior, Marginal
from amortes.prior.tasks import TaskBatch, TaskConfig, TaskStream

STEP = 5e-3


def conditioned_on(task: TaskBatch, prior: GPPrior = PRIORS["robust"]) -> Conditioned:
    particles = infer_particles(prior, task.X, task.y, ParticleConfig(count=1))
    return condition(prior, particles, task.X, task.y)


def rivals(conditioned: Conditioned, X: Tensor) -> Rivals:
    """Points `b x m x d` of which nobody knows which is the highest, nor how high."""
    at = conditioned.moments(X)
    nothing = torch.zeros_like(at.mean)
    return Rivals(
        X=X,
        moments=at,
        covariance=conditioned.covariance(at, at),
        share=nothing,
        highest=torch.full_like(nothing[..., 0], -100.0),
        unexplained=torch.ones_like(nothing[..., 0]),
    )


def peak(conditioned: Conditioned, X: Tensor, x_star: Tensor) -> Peak:
    """A peak at one place, x_star `b x d`, with rivals X."""
    return peak_at(conditioned, rivals(conditioned, X), x_star[:, None])


def posterior(found: Peak, Xq: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, variance and covariance with f(x*) at queries, `b x k x q`, from the rows."""
    conditioned, known = found.places.conditioned, found.known()
    at = conditioned.moments(Xq)
    raw = found.places.covariance(at)
    cross = conditioned.covariance(at, found.rivals.moments)
    rows = known.rows(raw, cross)
    mean = at.mean + (rows @ known.pull[..., None])[:, :, 0, :, 0]
    variance = at.variance - rows.square().sum(-1)[:, :, 0]
    covariance = raw[..., -1] - (rows @ known.star_rows[..., None]).squeeze(-1)
    return mean, variance, covariance[:, :, 0]


def draw(conditioned: Conditioned, points: Tensor, count: int) -> Tensor:
    """Draws of f at points `p x d` for dataset 0, particle 0: `count x p`."""
    X = points[None].expand(len(conditioned.X), -1, -1)
    at = conditioned.moments(X)
    cov = conditioned.covariance(at, at)[0, 0]
    L = torch.linalg.cholesky(cov + 1e-11 * torch.eye(len(cov)))
    noise = torch.randn(len(cov), count, generator=torch.Generator().manual_seed(1), dtype=L.dtype)
    draws: Tensor = (at.mean[0, 0][:, None] + L @ noise).T
    return draws


def moments_at(conditioned: Conditioned, V: Tensor) -> Moments:
    """The posterior at scaled points, which may lie outside the cube."""
    k_x = conditioned.kernel(conditioned.V, V)
    mean = conditioned.prior.mean.loc + (conditioned.coefficients[..., None, :] @ k_x).squeeze(-2)
    whitened = conditioned.whitener @ k_x
    variance = conditioned.prior_variance[..., None] - whitened.square().sum(-2)
    return Moments(mean, variance, whitened, V)


def joint(conditioned: Conditioned, X: Tensor, x_star: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance of f(X), f(x*), its slopes and curvatures: dataset 0, particle 0.

    Derivatives, by scaled coordinates, are finite differences of the exact posterior.
    """
    p, d = X.shape
    points = torch.cat([X, x_star[None]])[None].expand(len(conditioned.X), -1, -1)
    V = conditioned.scale(points)
    size = STEP / conditioned.particles.hyper.lengthscale[0, 0]
    steps = torch.diag(size)
    V = torch.cat([V, V[:, :, -1:] + steps, V[:, :, -1:] - steps], dim=2)
    at = moments_at(conditioned, V)
    cov = conditioned.covariance(at, at)[0, 0]
    D = torch.zeros(p + 1 + 2 * d, V.shape[2], dtype=torch.float64)
    D[: p + 1, : p + 1] = torch.eye(p + 1)
    for i in range(d):
        up, down = p + 1 + i, p + 1 + d + i
        D[p + 1 + i, [up, down]] = torch.tensor([0.5, -0.5], dtype=D.dtype) / size[i]
        bend = torch.tensor([1.0, -2.0, 1.0], dtype=D.dtype) / size[i] ** 2
        D[p + 1 + d + i, [up, p, down]] = bend
    return D @ at.mean[0, 0], D @ cov @ D.T


def given_zero(mean: Tensor, cov: Tensor, known: list[int]) -> tuple[Tensor, Tensor]:
    """Mean and covariance given that the entries `known` are zero."""
    gain = torch.linalg.solve(cov[known][:, known], cov[known]).T
    return mean - gain @ mean[known], cov - gain @ cov[known]


CASES = {
    "se": GPPrior(max_dim=2),
    "matern52": GPPrior(max_dim=2, kernel="matern52"),
    "warped": GPPrior(
        max_dim=2,
        output_variance=Marginal.lognormal(0.0, 0.5),
        warp_shape=Marginal.normal(0.0, 0.35),
        warp_shift=Marginal.normal(0.0, 0.8),
    ),
    "warped and mixed": dataclasses.replace(
        PRIORS["real"].models[1][1], max_dim=2, rough_odds=Marginal.fixed(1.0)
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("edge", [False, True])
def test_local_maximum_against_finite_differences(case: str, edge: bool) -> None:
    prior = CASES[case]
    task = TaskStream(prior, 77, TaskConfig(batch_size=3, num_queries=5)).batch_of(0, 2, 7)
    conditioned = conditioned_on(task, prior)
    x_star = torch.tensor([0.4, 1.0 if edge else 0.6], dtype=torch.float64)
    found = peak(conditioned, task.Xq, x_star.expand(3, 2))
    mean, cov = joint(conditioned, task.Xq[0], x_star)
    known = [6] if edge else [6, 7]
    S = cov[known][:, known]
    normal = torch.distributions.MultivariateNormal(mean[known], S)
    density = normal.log_prob(torch.zeros(len(known)))  # type: ignore[no-untyped-call]
    mean, cov = given_zero(mean, cov, known)
    # The fourth derivative of Matern-5/2 has a kink at zero.
    rough = 1e-2 if prior.kernel == "se" else 0.15

    def close(ours: Tensor, expected: Tensor, tolerance: float = 2e-2) -> bool:
        return torch.allclose(
            ours, expected, rtol=tolerance, atol=tolerance * float(expected.abs().max())
        )

    found_mean, found_variance, found_covariance = posterior(found, task.Xq)
    assert close(found_mean[0, 0], mean[:5])
    assert close(found_variance[0, 0], cov.diagonal()[:5])
    assert close(found_covariance[0, 0], cov[:5, 5])
    assert close(found.star_mean[0, 0], mean[5:6])
    assert close(found.star_variance[0, 0], cov[5:6, 5])
    assert close(found.curvature[0, 0, 0], mean[8:], rough)
    assert close(found.curvature_variance[0, 0, 0], cov.diagonal()[8:], rough)
    assert close(found.curvature_covariance[0, 0, 0], cov[8:, 5], rough)
    # A coordinate on a face adds the density of a standard normal at zero: the same for all.
    constant = -0.5 * math.log(2 * math.pi) if edge else 0.0
    # The density is one by the coordinates of the cube.
    stretch = conditioned.log_stretch(x_star.expand(3, 1, 2))[0, 0, 0]
    constant += float(stretch[: len(known)].sum())
    assert float(found.log_flat[0, 0, 0]) == pytest.approx(float(density) + constant, abs=0.03)


@pytest.mark.parametrize("prior", [PRIORS["robust"], CASES["warped"]], ids=["plain", "warped"])
def test_density_integrates_to_the_number_of_local_maxima(prior: GPPrior) -> None:
    prior = dataclasses.replace(prior, max_dim=16)
    task = TaskStream(prior, 3, TaskConfig(batch_size=1, num_queries=1)).batch_of(0, 1, 4)
    conditioned = conditioned_on(task, prior)
    grid = torch.linspace(0.05, 0.95, 181, dtype=torch.float64)[:, None]
    f = draw(conditioned, grid, 40_000)
    inner = f[:, 1:-1]
    count = ((inner > f[:, :-2]) & (inner > f[:, 2:])).double().sum(1)
    places = grid[:, None]
    particles = conditioned.particles
    many = condition(
        prior,
        dataclasses.replace(
            particles,
            hyper=particles.hyper[[0] * 181],
            log_weights=particles.log_weights.expand(181, -1),
        ),
        task.X.expand(181, -1, -1),
        task.y.expand(181, -1),
    )
    density = peak(many, places, grid).log_density()[:, 0, 0].exp()
    error = 5 * float(count.std()) / len(count) ** 0.5
    assert float(torch.trapezoid(density, grid[:, 0])) == pytest.approx(
        float(count.mean()), abs=error + 0.02
    )


def test_value_against_regression(task: TaskBatch) -> None:
    conditioned = conditioned_on(task)
    x_star = torch.tensor([[0.4, 0.6]] * 3, dtype=torch.float64)
    found = peak(conditioned, task.X, x_star)
    mean, variance, covariance = posterior(found, task.Xq)
    star_mean, star_variance = found.star_mean, found.star_variance
    f = task.optimum.f
    log_density = found.observe_value(f[:, None])
    surprise = f[:, None, None] - star_mean
    new_mean, new_variance, new_covariance = posterior(found, task.Xq)
    assert torch.allclose(new_mean, mean + covariance / star_variance * surprise)
    assert torch.allclose(new_variance, variance - covariance.square() / star_variance, atol=1e-8)
    assert torch.allclose(new_covariance, torch.zeros_like(covariance), atol=1e-8)
    normal = torch.distributions.Normal(star_mean, star_variance.sqrt())
    expected = normal.log_prob(f[:, None, None])  # type: ignore[no-untyped-call]
    assert torch.allclose(log_density, expected)
    assert (found.star_variance < 1e-12).all()


@pytest.mark.parametrize("value_known", [False, True])
def test_nothing_is_higher_against_rejection(task: TaskBatch, value_known: bool) -> None:
    conditioned = conditioned_on(task)
    x_star = torch.tensor([0.4, 0.6], dtype=torch.float64)
    landmarks = torch.tensor([[0.9, 0.2], [0.1, 0.1], [0.3, 0.9]], dtype=torch.float64)
    queries = torch.tensor([[0.8, 0.9], [0.2, 0.4], [0.0, 0.3]], dtype=torch.float64)
    points = torch.cat([queries, landmarks])
    found = peak(conditioned, landmarks.expand(3, 3, 2), x_star.expand(3, 2))
    mean, cov = given_zero(*joint(conditioned, points, x_star), [7, 8])
    value = found.star_mean[:, 0] + 0.5 * found.star_variance[:, 0].sqrt()  # b x 1
    if value_known:
        found.observe_value(value)
        mean[6] -= value[0, 0]
        mean, cov = given_zero(mean, cov, [6])
        mean[6] += value[0, 0]
    root = torch.linalg.cholesky(cov[:7, :7] + 1e-9 * torch.eye(7, dtype=torch.float64))
    rng = torch.Generator().manual_seed(0)
    draws = mean[:7] + torch.randn(400_000, 7, generator=rng, dtype=torch.float64) @ root.T
    f, star = draws[:, :6], draws[:, 6:]
    log_probability = found.observe_highest(3)
    kept = (f[:, 3:] <= star).all(1)
    # Moment matching is an approximation, hence the tolerances.
    share = float(kept.double().mean())
    assert 0.01 < share < 0.9
    assert float(log_probability[0, 0, 0].exp()) == pytest.approx(share, rel=0.1)
    sd = f.std(0)[:3]
    found_mean, found_variance, _ = posterior(found, queries.expand(3, 3, 2))
    assert ((found_mean[0, 0] - f[kept, :3].mean(0)).abs() < 0.1 * sd).all()
    assert ((found_variance[0, 0].sqrt() / f[kept, :3].std(0)).log().abs() < 0.1).all()
    below_mean, below_variance, gap = below(found, queries.expand(3, 3, 2))
    open_to_doubt = gap[0, 0, 0].abs().argsort()[:2].tolist()  # the third is far from f(x*)
    for i in open_to_doubt:
        lower = f[kept & (f[:, i] <= star[:, 0]), i]
        assert len(lower) > 1000
        assert float(below_mean[0, 0, 0, i]) == pytest.approx(
            float(lower.mean()), abs=0.1 * float(sd[i])
        )
        assert float(below_variance[0, 0, 0, i].sqrt()) == pytest.approx(
            float(lower.std()), rel=0.3
        )


def below(found: Peak, Xq: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    known: Known = found.known()
    conditioned = found.places.conditioned
    at = conditioned.moments(Xq)
    raw = found.places.covariance(at)
    cross = conditioned.covariance(at, found.rivals.moments)
    return known.below(at.mean, at.variance, known.rows(raw, cross), raw[..., -1])


def test_a_rival_at_the_optimum_itself_is_not_higher(task: TaskBatch) -> None:
    conditioned = conditioned_on(task)
    x_star = torch.tensor([[0.4, 1.0]] * 3, dtype=torch.float64)
    found = peak(conditioned, x_star[:, None].expand(-1, 4, -1), x_star)
    mean = posterior(found, task.Xq)[0]
    assert (found.observe_highest(4) > -1e-3).all()
    assert torch.allclose(posterior(found, task.Xq)[0], mean, atol=1e-3)


def test_the_maximum_against_rejection() -> None:
    """Three dimensions, where the maximum counts: f(x*) above a maximum due to one point."""
    task = TaskStream(PRIORS["robust"], 5, TaskConfig(batch_size=3, num_queries=4)).batch_of(
        0, 3, 6
    )
    conditioned = conditioned_on(task)
    x_star = torch.tensor([0.3, 0.0, 1.0], dtype=torch.float64)
    other = torch.tensor([[0.8, 0.7, 0.2], [0.1, 0.9, 0.5]], dtype=torch.float64)
    among = rivals(conditioned, other.expand(3, 2, 3))
    # The maximum is f at the first of them, plus something independent of f.
    share = torch.zeros_like(among.share)
    share[..., 0] = 1.0
    highest = among.moments.mean[..., 0] - 1.0
    unexplained = torch.full_like(highest, 0.04)
    among = Rivals(among.X, among.moments, among.covariance, share, highest, unexplained)
    found = peak_at(conditioned, among, x_star.expand(3, 1, 3))
    points = torch.cat([task.Xq[0], other[:1]])
    mean, cov = given_zero(*joint(conditioned, points, x_star), [6])
    root = torch.linalg.cholesky(cov[:6, :6] + 1e-9 * torch.eye(6, dtype=torch.float64))
    rng = torch.Generator().manual_seed(0)
    noise = torch.randn(400_000, 7, generator=rng, dtype=torch.float64)
    draws = mean[:6] + noise[:, :6] @ root.T
    kept = draws[:, 5] >= draws[:, 4] - 1.0 + 0.2 * noise[:, 6]
    share_kept = float(kept.double().mean())
    assert 0.02 < share_kept < 0.98
    assert float(found._observe_maximum()[0, 0, 0].exp()) == pytest.approx(share_kept, abs=0.01)
    found_mean, found_variance, _ = posterior(found, task.Xq)
    expected = draws[kept, :4]
    assert torch.allclose(found_mean[0, 0], expected.mean(0), atol=0.02)
    assert torch.allclose(found_variance[0, 0].sqrt(), expected.std(0), rtol=0.03)


def test_places_are_independent_of_each_other(task: TaskBatch) -> None:
    conditioned = conditioned_on(task)
    places = torch.tensor([[0.4, 0.6], [0.9, 1.0], [0.1, 0.3]], dtype=torch.float64)
    among = rivals(conditioned, task.X)
    together = peak_at(conditioned, among, places.expand(3, 3, 2))
    log_probability = together.observe_highest(2)
    for i in range(3):
        alone = peak_at(conditioned, among, places[None, i : i + 1].expand(3, 1, 2))
        assert torch.allclose(alone.observe_highest(2)[..., 0], log_probability[..., i])
        assert torch.allclose(alone.known().mix[:, :, 0], together.known().mix[:, :, i])
