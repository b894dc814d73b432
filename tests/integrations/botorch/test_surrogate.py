import copy
import pickle

import pytest
import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
)
from botorch.acquisition.objective import (
    ExpectationPosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.generation import MaxPosteriorSampling
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from torch import Tensor

from amortes.acquisition import Fitted
from amortes.errors import ConfigError, DataError
from amortes.integrations.botorch import JES, Surrogate
from amortes.nets.kernel import KernelNetwork
from tests.integrations.botorch.conftest import BOUNDS, raw

X_NEW = raw(6, seed=1)[0]


def unit(X: Tensor) -> Tensor:
    return (X - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0])


def test_predictions_are_those_of_the_network_in_the_units_of_the_data(
    network: KernelNetwork, model: Surrogate
) -> None:
    X, Y = raw(10)
    fitted = Fitted(network, unit(X), Y.squeeze(-1))
    batches = X_NEW.reshape(3, 2, 2)
    for noise, expected in (
        (True, fitted.predict(unit(X_NEW))),
        (False, fitted.latent(unit(X_NEW))),
    ):
        posterior = model.posterior(batches, observation_noise=noise)
        assert torch.equal(posterior.mean, expected.mean.reshape(3, 2, 1))
        assert torch.equal(posterior.variance, expected.variance.reshape(3, 2, 1))
    at_data = model.posterior(X)
    assert torch.allclose(at_data.mean, Y, atol=0.05 * float(Y.std()))
    assert torch.equal(model.train_inputs[0], X)
    assert torch.equal(model.train_targets, Y.squeeze(-1))
    assert (model.num_outputs, model.batch_shape) == (1, ())


def test_the_direction_is_no_matter_of_predictions(network: KernelNetwork) -> None:
    X, Y = raw(10)
    up = Surrogate(X, Y, network=network, bounds=BOUNDS).posterior(X_NEW)
    down = Surrogate(X, -Y, network=network, bounds=BOUNDS, maximize=False).posterior(X_NEW)
    assert torch.allclose(up.mean, -down.mean)
    assert torch.allclose(up.variance, down.variance)


def test_joint_samples_move_together(model: Surrogate) -> None:
    near = torch.stack([X_NEW[0], X_NEW[0] + 0.05, X_NEW[3]])
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        draws = model.posterior(near).rsample(torch.Size([500])).squeeze(-1)
    correlation = torch.corrcoef(draws.mT)
    assert correlation[0, 1] > 0.99
    assert correlation[0, 2] < 0.97
    batches = model.posterior(X_NEW.reshape(3, 2, 2)).rsample(torch.Size([7]))
    assert batches.shape == (7, 3, 2, 1)


def test_new_observations(network: KernelNetwork, model: Surrogate) -> None:
    X, Y = raw(10)
    X2, Y2 = raw(3, seed=2)
    together = Surrogate(torch.cat([X, X2]), torch.cat([Y, Y2]), network=network, bounds=BOUNDS)
    grown = model.condition_on_observations(X2, Y2)
    assert torch.equal(grown.posterior(X_NEW).mean, together.posterior(X_NEW).mean)
    assert len(model.train_targets) == 10
    with pytest.raises(DataError, match="n x 1"):
        model.condition_on_observations(X2.expand(4, 3, 2), Y2.expand(4, 3, 1))
    with pytest.raises(UnsupportedError, match="noise"):
        model.condition_on_observations(X2, Y2, noise=Y2)


def test_the_optimum_can_be_told(network: KernelNetwork) -> None:
    X, Y = raw(10)
    for sign in (1.0, -1.0):
        model = Surrogate(X, sign * Y, network=network, bounds=BOUNDS, maximize=sign > 0)
        x = torch.tensor([4.0, 9.0], dtype=torch.float64)
        told = model.condition_on_optimum(x=x, f=sign * 310.0)
        assert float(told.posterior(x[None]).mean) == pytest.approx(sign * 310.0, abs=0.5)
        assert float(told.posterior(x[None]).variance) < float(model.posterior(x[None]).variance)
        # More data do not make it forget, though they change the standardisation.
        grown = told.condition_on_observations(*(X_NEW, sign * raw(6, seed=1)[1]))
        assert float(grown.posterior(x[None]).mean) == pytest.approx(sign * 310.0, abs=0.5)
        bounded = model.condition_on_optimum(f=sign * (float(Y.max()) + 1.0))
        excess = sign * bounded.posterior(X_NEW).mean - (float(Y.max()) + 1.0)
        assert (excess < 0.0).all()
    with pytest.raises(UnsupportedError, match="q > 1"):
        told.posterior(X_NEW).rsample()


def test_scalarised_posteriors(model: Surrogate) -> None:
    plain = model.posterior(X_NEW)
    weights = torch.tensor([-2.0], dtype=torch.float64)
    flipped = model.posterior(
        X_NEW, posterior_transform=ScalarizedPosteriorTransform(weights, offset=5.0)
    )
    assert torch.allclose(flipped.mean, 5.0 - 2.0 * plain.mean)
    assert torch.allclose(flipped.variance, 4.0 * plain.variance)


def test_botorchs_own_acquisition_functions(model: Surrogate) -> None:
    best = float(model.train_targets.max())
    X = X_NEW[:, None]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        exact = model.posterior(X).mixture.log_expected_improvement(
            torch.tensor(best, dtype=torch.float64)
        )
        sampled = qLogExpectedImprovement(model, best_f=best)(X)
        likely = exact[:, 0] > -2.0  # where 512 samples see improvement
        assert likely.sum() >= 2
        assert torch.allclose(sampled[likely], exact[likely, 0], atol=0.1)
        assert LogExpectedImprovement(model, best_f=best)(X).isfinite().all()
        candidates, _ = optimize_acqf(
            qLogNoisyExpectedImprovement(model, X_baseline=model.train_inputs[0], cache_root=False),
            BOUNDS, q=2, num_restarts=2, raw_samples=8, options={"maxiter": 5},
        )  # fmt: skip
        assert candidates.shape == (2, 2)
        thompson = MaxPosteriorSampling(model)(raw(200, seed=5)[0], num_samples=3)
    assert thompson.shape == (3, 2)
    assert ((thompson - torch.tensor([4.0, 9.0])).norm(dim=1) < 6.0).all()


def test_single_precision_comes_in_but_double_goes_on(network: KernelNetwork) -> None:
    X, Y = raw(10)
    model = Surrogate(X.float(), Y.float(), network=network, bounds=BOUNDS.float())
    posterior = model.posterior(X_NEW.float())
    assert posterior.mean.dtype == torch.float64


def test_copies_and_moves(model: Surrogate) -> None:
    expected = model.posterior(X_NEW).mean
    for same in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.to(torch.float64)):
        assert torch.equal(same.posterior(X_NEW).mean, expected)
    assert model.subset_output([0]) is model
    assert not list(model.parameters())  # the network is not to be trained or cast


def test_what_is_not_supported_is_refused(network: KernelNetwork, model: Surrogate) -> None:
    X, Y = raw(10)
    for option in (
        {"outcome_transform": Standardize(m=1)},
        {"input_transform": Normalize(d=2)},
        {"train_Yvar": torch.ones_like(Y)},
    ):
        with pytest.raises(ConfigError, match=f"does not take {next(iter(option))}.*raw data"):
            Surrogate(X, Y, network=network, bounds=BOUNDS, **option)
    with pytest.raises(UnsupportedError, match="one output"):
        model.posterior(X_NEW, output_indices=[1])
    with pytest.raises(UnsupportedError, match="inferred"):
        model.posterior(X_NEW, observation_noise=torch.ones(1))
    with pytest.raises(UnsupportedError, match="ExpectationPosteriorTransform"):
        model.posterior(X_NEW, posterior_transform=ExpectationPosteriorTransform(n_w=2))
    with pytest.raises(UnsupportedError, match="one output"):
        model.subset_output([0, 1])


def test_bad_data(network: KernelNetwork, model: Surrogate) -> None:
    X, Y = raw(4)
    with pytest.raises(DataError, match=r"outside its bounds 0 to 1\. Pass `bounds=`"):
        Surrogate(X, Y, network=network)
    with pytest.raises(DataError, match=r"outside its bounds"):
        model.condition_on_observations(BOUNDS[1:] + 1.0, Y[:1])
    with pytest.raises(DataError, match="n x 1, not"):
        Surrogate(X, Y.squeeze(-1), network=network, bounds=BOUNDS)
    with pytest.raises(DataError, match="n x 1, not"):
        Surrogate(X, Y.expand(4, 2), network=network, bounds=BOUNDS)
    with pytest.raises(DataError, match="bounds must be 2 x 2"):
        Surrogate(X, Y, network=network, bounds=BOUNDS.mT[:1])
    with pytest.raises(DataError, match="lower below upper"):
        Surrogate(X, Y, network=network, bounds=BOUNDS.flip(0))
    with pytest.raises(DataError, match=r"rows \[0\]"):
        Surrogate(X, Y * torch.tensor([[torch.nan], [1], [1], [1]]), network=network, bounds=BOUNDS)
    with pytest.raises(DataError, match="2 columns"):
        model.posterior(torch.zeros(3, 1))
    for ask in (model.posterior, JES(model), JES(model).set_X_pending):
        with pytest.raises(DataError, match=r"column 0 .* from .* outside its bounds"):
            ask(BOUNDS[1:] + 1.0)


def test_lists_and_arrays(network: KernelNetwork, model: Surrogate) -> None:
    X, Y = model.train_inputs[0], model.train_targets[:, None]
    listed = Surrogate(X.tolist(), Y.tolist(), network=network, bounds=BOUNDS.tolist())
    arrays = Surrogate(X.numpy(), Y.numpy(), network=network, bounds=BOUNDS.numpy())
    for other in (listed, arrays):
        close = torch.allclose(other.posterior(X_NEW).mean, model.posterior(X_NEW).mean)
        assert close


def test_rounding_of_single_precision_is_not_outside(network: KernelNetwork) -> None:
    bounds = torch.tensor([[10000.3], [10001.3]], dtype=torch.float64)
    X = torch.linspace(10000.3, 10001.3, 5, dtype=torch.float64)[:, None].float()
    model = Surrogate(X, X.double().sin(), network=network, bounds=bounds)
    assert model.posterior(X).mean.isfinite().all()
    with pytest.raises(DataError, match=r"outside its bounds 10000\.3 to 10001\.3"):
        model.posterior(X + 0.1)


def test_fantasies_are_refused(model: Surrogate) -> None:
    with pytest.raises(UnsupportedError, match="JES, which looks ahead by itself"):
        qKnowledgeGradient(model, num_fantasies=2)(X_NEW[None, :3])


def test_points_that_are_none(model: Surrogate) -> None:
    with pytest.raises(DataError, match="X must have 2 columns"):
        model.posterior(torch.zeros(2, dtype=torch.float64))
    with pytest.raises(DataError, match="X must be finite"):
        model.posterior(torch.full((1, 2), float("nan"), dtype=torch.float64))
