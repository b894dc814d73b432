import dataclasses

import pytest
import torch
from torch import nn

from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.nets.kernel.gains.gain_network import GainConfig
from amortes.nets.kernel.optimum.representers import RepresenterConfig
from amortes.nets.transformer import Transformer, TransformerConfig
from amortes.oracles import many_draws as module
from amortes.oracles.brute_force import rank_correlation
from amortes.oracles.many_draws import many_draws, queries, variants
from amortes.prior.gp import GPPrior
from amortes.prior.tasks import TaskConfig, TaskStream

PRIOR = GPPrior(name="small", max_dim=3)


def test_queries_are_anywhere_and_around_the_best() -> None:
    X = torch.rand(30, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = -(X - 0.5).square().sum(-1)
    Xq = queries(X, y, seed=1)
    assert Xq.shape == (module.QUERIES, 3)
    assert float(Xq.min()) >= 0.0
    assert float(Xq.max()) <= 1.0
    far, near = torch.cdist(Xq, X[y.topk(module.CENTRES).indices]).amin(1).chunk(2)
    assert near.median() < 0.6 * far.median()
    assert torch.equal(Xq, queries(X, y, seed=1))


def test_many_draws_agree_with_others_better_than_few(monkeypatch: pytest.MonkeyPatch) -> None:
    task = TaskStream(PRIOR, 5, TaskConfig(batch_size=1, num_queries=2)).batch_of(0, 3, 10)
    X, y = task.X[0], task.y[0]
    Xq = queries(X, y, seed=2)
    network = KernelNetwork(KernelConfig(encoder=None), PRIOR).eval()
    gain, reliability = many_draws(network, X, y, Xq)
    assert gain.shape == (module.QUERIES, 3)
    assert (reliability > 0.8).all()
    few = dataclasses.replace(network.config, landmarks=RepresenterConfig(optima=4))
    other = KernelNetwork(few, PRIOR).eval()
    values = other.gain(other.condition(X[None], y[None]), Xq[None]).mean[0]
    monkeypatch.setattr(module, "CONFIG", dataclasses.replace(module.CONFIG, optima=128))
    half, _ = many_draws(network, X, y, Xq)
    for i in range(3):
        assert rank_correlation(half[:, i], gain[:, i]) > rank_correlation(values[:, i], gain[:, i])


def test_variants_differ_in_what_gains_are_made_of() -> None:
    network = KernelNetwork(KernelConfig(gains=GainConfig(width=4)), PRIOR).eval()
    assert network.gain_network is not None
    nn.init.constant_(network.gain_network.scale, 3.0)
    network.gain_network.query_mean.fill_(2.0)
    state = torch.random.get_rng_state()
    found = variants(network)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert list(found) == ["learned", "untrained", "draws"]
    assert found["learned"] is network
    untrained, drawn = found["untrained"], found["draws"]
    assert isinstance(untrained, KernelNetwork)
    assert isinstance(drawn, KernelNetwork)
    assert untrained.gain_network is not None
    assert not untrained.gain_network.scale.any()
    assert (untrained.gain_network.query_mean == 2.0).all()
    assert drawn.gain_network is None
    for other in (untrained, drawn):  # all infer alike
        assert other.encoder is not None
        assert network.encoder is not None
        for name, tensor in network.encoder.state_dict().items():
            assert torch.equal(other.encoder.state_dict()[name], tensor)
    again = variants(network)["untrained"].state_dict()
    assert all(torch.equal(again[name], t) for name, t in untrained.state_dict().items())
    assert list(variants(drawn)) == ["draws"]


def test_other_networks_are_compared_with_a_kernel_network_of_their_prior() -> None:
    network = Transformer(TransformerConfig(width=8, layers=1, heads=1), PRIOR).eval()
    assert variants(network) == {"learned": network}
    reference = module._without_learned_gains(network)
    assert reference.prior == PRIOR
    assert reference.encoder is None
