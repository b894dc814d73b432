from amortes.nets.kernel.conditioning import condition
from amortes.nets.kernel.landmarks import LandmarkConfig, find_landmarks
from amortes.nets.kernel.particles import ParticleConfig, infer_particles
from amortes.nets.kernel.textbook import textbook_gains
from amortes.prior.gp import PRIORS
from amortes.prior.tasks import TaskConfig, TaskStream

PRIOR = PRIORS["robust"]


def test_textbook_gains_are_positive_bounded_and_vanish_at_known_points() -> None:
    task = TaskStream(PRIOR, 9, TaskConfig(batch_size=20, num_queries=30)).batch_of(0, 1, 6)
    particles = infer_particles(PRIOR, task.X, task.y, ParticleConfig(count=4))
    conditioned = condition(PRIOR, particles, task.X, task.y)
    landmarks = find_landmarks(conditioned, LandmarkConfig())
    for Xq, limit in ((task.Xq, 20.0), (task.X, 20.0)):
        at = conditioned.moments(Xq)
        cross = conditioned.covariance(Xq, at, landmarks.X, landmarks.moments)
        gains = textbook_gains(conditioned, landmarks, at, cross)
        assert gains.shape == (*Xq.shape[:2], 3)
        assert (gains >= 0).all()
        w = conditioned.particles.log_weights.exp()[..., None]
        ratio = at.variance / conditioned.noise_variance[..., None]
        reducible = 0.5 * (w * (1 + ratio).log()).sum(1)
        assert (gains[..., 1] <= reducible + 1e-9).all()
        assert (gains < limit).all()
