import warnings
from collections.abc import Iterator

import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf, optimize_acqf_discrete, optimize_acqf_mixed
from torch import Tensor

from amortes.acquisition import Fitted
from amortes.errors import ConfigError, DataError
from amortes.integrations.botorch import EI, JES, MES, PES, UCB, LogEI, PosteriorMean, Surrogate
from amortes.nets.kernel import KernelNetwork
from tests.integrations.botorch.conftest import BOUNDS, raw

ALL = (PES, MES, JES, LogEI, EI, UCB, PosteriorMean)
X = raw(6, seed=1)[0][:, None]  # 6 x 1 x 2


@pytest.fixture(autouse=True)
def repeatable() -> Iterator[None]:
    """BoTorch's optimisers draw from torch's global generator."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        yield


def unit(points: Tensor) -> Tensor:
    return (points - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])


@pytest.mark.parametrize("acquisition", ALL)
@pytest.mark.parametrize("maximize", [True, False])
def test_values_are_the_scores(
    network: KernelNetwork, acquisition: type[JES], maximize: bool
) -> None:
    points, Y = raw(10)
    model = Surrogate(points, Y, network=network, bounds=BOUNDS, maximize=maximize)
    fitted = Fitted(network, unit(points), Y.squeeze(-1), maximise=maximize)
    acqf = acquisition(model)
    values = acqf(X)
    expected = fitted.score(acqf.name, unit(X.squeeze(1)))
    assert torch.allclose(values, expected, rtol=1e-6)
    assert values.shape == (6,)
    assert values.dtype == torch.float64
    assert torch.allclose(acqf(X.reshape(2, 3, 1, 2)), values.reshape(2, 3), rtol=1e-5)
    assert torch.allclose(acqf(X[0]), values[:1], rtol=1e-5)
    assert acqf(X.float()).dtype == torch.float32


@pytest.mark.parametrize("acquisition", ALL)
def test_gradients_in_raw_units(model: Surrogate, acquisition: type[JES]) -> None:
    acqf = acquisition(model)
    at = X.clone().requires_grad_()
    (slope,) = torch.autograd.grad(acqf(at).sum(), at)
    h = 1e-4  # bounds are 15 wide
    for i in range(2):
        step = torch.zeros_like(X)
        step[..., i] = h
        difference = (acqf(X + step) - acqf(X - step)) / (2 * h)
        tolerance = 1e-5 * float(acqf(X).std())
        assert torch.allclose(slope[:, 0, i], difference, rtol=1e-4, atol=tolerance)


@pytest.mark.parametrize("acquisition", ALL)
def test_optimize_acqf_beats_random_points(model: Surrogate, acquisition: type[JES]) -> None:
    acqf = acquisition(model)
    candidate, value = optimize_acqf(acqf, BOUNDS, q=1, num_restarts=4, raw_samples=64)
    assert candidate.shape == (1, 2)
    assert float(value) >= float(acqf(raw(300, seed=3)[0][:, None]).max()) - 1e-3
    assert float(acqf(candidate)) == pytest.approx(float(value), rel=1e-4)


def test_improvement_over_a_given_value_and_the_width_of_the_bound(model: Surrogate) -> None:
    low, high = EI(model, best_f=250.0)(X), EI(model, best_f=290.0)(X)
    assert (low > high).all()
    assert torch.allclose(LogEI(model, best_f=290.0)(X).exp(), high)
    posterior = model.posterior(X)
    bound = posterior.mean + 3.0 * posterior.variance.sqrt()
    _, Y = raw(10)
    assert torch.allclose(UCB(model, beta=9.0)(X), (bound[:, 0, 0] - Y.mean()) / Y.std())
    with pytest.raises(ConfigError, match="beta"):
        UCB(model, beta=-1.0)


@pytest.mark.parametrize("acquisition", [PES, MES, JES])
def test_the_distribution_of_a_gain(model: Surrogate, acquisition: type[JES]) -> None:
    acqf = acquisition(model)
    gain = acqf.distribution(X)
    assert gain.batch_shape == (6,)
    assert torch.allclose(gain.mean, acqf(X))
    with pytest.raises(DataError, match="b x 1 x d"):
        acqf.distribution(X.reshape(3, 2, 2))


@pytest.mark.parametrize("acquisition", [JES, MES, LogEI, UCB])
def test_a_batch_chosen_greedily_has_different_points(
    model: Surrogate, acquisition: type[JES]
) -> None:
    acqf = acquisition(model)
    before = acqf(X)
    points, _ = optimize_acqf(acqf, BOUNDS, q=3, num_restarts=3, raw_samples=32, sequential=True)
    distances = torch.pdist(unit(points))
    assert distances.min() > 0.01
    # The optimiser puts pending points back as they were.
    assert acqf.X_pending is None
    assert torch.equal(acqf(X), before)


def test_pending_points_lower_the_value_of_their_neighbourhood(model: Surrogate) -> None:
    for acquisition in (PES, MES, JES, EI, LogEI, UCB):
        alone = acquisition(model)
        best = X[alone(X).argmax()]
        waiting = acquisition(model, X_pending=best)
        assert float(waiting(best)) < float(alone(best))
        waiting.set_X_pending(None)
        assert torch.equal(waiting(X), alone(X))
    mean = PosteriorMean(model)
    assert torch.allclose(PosteriorMean(model, X_pending=X[0])(X), mean(X))


def test_several_points_are_worth_their_sequence(model: Surrogate) -> None:
    pair = X[:2].reshape(1, 2, 2)
    first, second = JES(model)(X[0]), JES(model, X_pending=X[0])(X[1])
    assert torch.allclose(JES(model)(pair), first + second, rtol=1e-5)
    log_ei = torch.logaddexp(LogEI(model)(X[0]), LogEI(model, X_pending=X[0])(X[1]))
    assert torch.allclose(LogEI(model)(pair), log_ei)
    mean = PosteriorMean(model)
    assert torch.allclose(mean(pair), mean(X[:2]).max())
    bound = torch.maximum(UCB(model)(X[0]), UCB(model, X_pending=X[0])(X[1]))
    assert torch.allclose(UCB(model)(pair), bound)
    with pytest.raises(UnsupportedError, match="sequential=True"):
        JES(model)(pair.clone().requires_grad_())


def test_discrete_and_mixed_choices(model: Surrogate) -> None:
    choices = raw(60, seed=4)[0]
    acqf = JES(model)
    points, values = optimize_acqf_discrete(acqf, q=2, choices=choices)
    assert float(values[0]) == pytest.approx(float(acqf(choices[:, None]).max()), rel=1e-5)
    assert not torch.equal(points[0], points[1])
    points, _ = optimize_acqf_mixed(
        acqf, BOUNDS, q=2, num_restarts=2, raw_samples=16,
        fixed_features_list=[{0: -2.0}, {0: 3.0}], options={"maxiter": 20},
    )  # fmt: skip
    assert set(points[:, 0].tolist()) <= {-2.0, 3.0}
    assert not torch.equal(points[0], points[1])


def test_fixed_features_and_constraints(model: Surrogate) -> None:
    point, _ = optimize_acqf(
        JES(model), BOUNDS, q=1, num_restarts=2, raw_samples=16, fixed_features={1: 5.0}
    )
    assert float(point[0, 1]) == 5.0
    # x0 + x1 <= 6
    both = torch.tensor([0, 1]), torch.tensor([-1.0, -1.0], dtype=torch.float64), -6.0
    point, _ = optimize_acqf(
        LogEI(model), BOUNDS, q=1, num_restarts=2, raw_samples=16, inequality_constraints=[both]
    )
    assert float(point.sum()) <= 6.0 + 1e-6


def test_conditioning_happens_once(
    network: KernelNetwork, model: Surrogate, monkeypatch: pytest.MonkeyPatch
) -> None:
    acqf = JES(model)
    before = acqf(X)

    def fails(*args: object) -> None:
        raise AssertionError("conditioned again")

    monkeypatch.setattr(network, "condition", fails)
    for _ in range(3):
        assert torch.equal(acqf(X), before)


def test_input_constructors(model: Surrogate) -> None:
    for acquisition in ALL:
        inputs = get_acqf_input_constructor(acquisition)(model=model, training_data=None)
        assert torch.equal(acquisition(**inputs)(X), acquisition(model)(X))
    inputs = get_acqf_input_constructor(UCB)(model=model, beta=1.0, X_pending=X[0])
    assert torch.equal(UCB(**inputs)(X), UCB(model, 1.0, X[0])(X))
    inputs = get_acqf_input_constructor(EI)(model=model, best_f=1.0)
    assert torch.equal(EI(**inputs)(X), EI(model, 1.0)(X))
    negated = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.float64))
    for acquisition in ALL:
        with pytest.raises(UnsupportedError, match=r"posterior_transform, .* not supported"):
            get_acqf_input_constructor(acquisition)(model=model, posterior_transform=negated)


def test_whole_numbers_are_points_too(model: Surrogate) -> None:
    whole = torch.tensor([[[1, 2]], [[4, 7]]])
    for acquisition in ALL:
        assert torch.equal(acquisition(model)(whole), acquisition(model)(whole.double()))


def test_one_best_value(model: Surrogate) -> None:
    assert LogEI(model, best_f=torch.tensor([1.0]))(X).isfinite().all()
    with pytest.raises(DataError, match="best_f: must be one number"):
        LogEI(model, best_f=torch.tensor([1.0, 2.0]))


def test_other_models_are_refused() -> None:
    points, Y = raw(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = SingleTaskGP(points, Y)
    with pytest.raises(ConfigError, match="JES needs an amortes Surrogate, not a SingleTaskGP"):
        JES(other)


def test_gains_of_a_told_optimum_are_refused(model: Surrogate) -> None:
    told = model.condition_on_optimum(f=310.0)
    with pytest.raises(ConfigError, match="no gain left"):
        JES(told)(X)
    assert LogEI(told)(X).isfinite().all()
    assert EI(told, X_pending=X[0])(X).isfinite().all()
