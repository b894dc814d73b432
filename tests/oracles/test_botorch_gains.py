import sys

import pytest
import torch

from amortes.errors import MissingExtraError
from amortes.oracles import botorch_gains as module
from amortes.oracles.botorch_gains import _model, botorch_gains
from amortes.oracles.brute_force import rank_correlation
from amortes.oracles.smc import hyper_posterior
from amortes.prior.gp import GPPrior, Kernel, Marginal
from amortes.random import generator

X = torch.tensor([[0.1], [0.35], [0.4], [0.8]], dtype=torch.float64)
Y = torch.tensor([0.0, 1.0, 0.9, -0.5], dtype=torch.float64)
XQ = torch.linspace(0, 1, 9, dtype=torch.float64)[:, None]


@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("mean", [Marginal.fixed(0.3), Marginal.normal(0.1, 0.5)])
def test_model_is_the_same_gaussian_process(kernel: Kernel, mean: Marginal) -> None:
    pytest.importorskip("botorch")
    prior = GPPrior(kernel=kernel, mean=mean, output_variance=Marginal.lognormal(0.0, 0.5))
    posterior = hyper_posterior(prior, X[None], Y[None], generator(0)).thinned(3)
    moments = posterior.gp.moments(posterior.z, XQ[None])
    for i in range(3):
        with torch.no_grad():
            actual = _model(posterior, Y, i).posterior(XQ)
        assert torch.allclose(actual.mean[:, 0], moments[0][0, i], atol=1e-5)
        assert torch.allclose(actual.variance[:, 0], moments[1][0, i], atol=1e-5)


def test_gains_are_large_where_there_is_something_to_learn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("botorch")
    monkeypatch.setattr(module, "HYPERPARAMETERS", 2)
    prior = GPPrior(lengthscale=Marginal.fixed(0.15), noise_sd=Marginal.fixed(0.1))
    state = torch.random.get_rng_state()
    gains = botorch_gains(prior, X, Y, XQ, seed=1)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert gains.shape == (9, 3)
    assert bool(torch.isfinite(gains).all())
    assert (gains.amax(0) > gains[1] + 0.05).all()  # x = 0.125 is next to an observation
    assert rank_correlation(gains[:, 1], gains[:, 2]) > 0.5
    assert torch.equal(botorch_gains(prior, X, Y, XQ, seed=1), gains)


def test_missing_botorch_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botorch.acquisition", None)
    with pytest.raises(MissingExtraError, match=r"amortes\[botorch\]"):
        botorch_gains(GPPrior(), X, Y, XQ, seed=0)
