import dataclasses
import math
from typing import Any

import pytest
import torch

from amortes.errors import ConfigError
from amortes.prior.gp import LATER, PRIORS, GPPrior, Hyperparameters, Marginal, named_prior
from amortes.random import derive_seeds, generator


def test_paper_prior_matches_its_specification() -> None:
    seeds = derive_seeds(17, count=4000)
    for d in (1, 6):
        hyper = named_prior("paper").sample(seeds, d)
        log_l = hyper.lengthscale.log()
        standard_error = 0.75 / math.sqrt(len(seeds) * d)
        assert abs(log_l.mean() - (-0.75 + math.log(d) / 2)) < 4 * standard_error
        assert log_l.std() == pytest.approx(0.75, abs=0.03)
        assert abs(hyper.noise_sd.log().mean() + 4.0) < 4 / math.sqrt(len(seeds))
        assert hyper.noise_sd.log().std() == pytest.approx(1.0, abs=0.05)
        assert hyper.mean.std() == pytest.approx(0.5, abs=0.03)
        assert (hyper.output_variance == 1.0).all()


def test_fixed_prior_has_no_spread() -> None:
    hyper = named_prior("paper-1d").sample(derive_seeds(1, count=3), 1)
    assert (hyper.lengthscale == 0.05).all()
    assert torch.allclose(hyper.noise_sd.square(), torch.tensor(0.01, dtype=torch.float64))
    assert (hyper.output_variance == 10.0).all()
    assert (hyper.mean == 0.0).all()


def test_a_sample_depends_on_its_own_seed_only() -> None:
    seeds = derive_seeds(2, count=5)
    whole = PRIORS["real"].sample(seeds, 3)
    part = PRIORS["real"].sample(seeds[3:4], 3)
    for a, b in zip(whole[3:4].tensors().values(), part.tensors().values(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("kernel", {"kernel": "linear"}),
        ("min_dim", {"min_dim": 0}),
        ("max_dim", {"min_dim": 3, "max_dim": 2}),
        ("lengthscale", {"lengthscale": Marginal.fixed(0.0)}),
        ("lengthscale", {"lengthscale": Marginal.normal(1.0, 0.1)}),
        ("noise_sd", {"noise_sd": Marginal.lognormal(math.nan, 1.0)}),
        ("mean", {"mean": Marginal.normal(0.0, -1.0)}),
        ("output_variance", {"output_variance": Marginal.fixed(-1.0)}),
        ("rough_odds", {"rough_odds": Marginal.normal(0.0, 1.0)}),
        ("warp_shape: must be normal", {"warp_shape": Marginal.lognormal(0.0, 1.0)}),
        ("warp_shift", {"warp_shift": Marginal.normal(math.inf, 1.0)}),
        ("warp_probability", {"warp_probability": 0.0}),
        ("warp_probability", {"warp_probability": 1.5}),
        ("mean: must be normal", {"mean": Marginal.lognormal(0.0, 1.0)}),
        ("mean: .* dim_power", {"mean": Marginal(loc=0.0, scale=1.0, log=False, dim_power=0.5)}),
        (
            "noise_sd: .* dim_power",
            {"noise_sd": Marginal(loc=1.0, scale=0.0, log=False, dim_power=-1.0)},
        ),
    ],
)
def test_invalid_values_name_the_field(field: str, values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=field):
        GPPrior(**values)


def test_unknown_names_and_dimensions_are_explained() -> None:
    with pytest.raises(ConfigError, match="paper, paper-1d, robust, real"):
        named_prior("paperr")
    with pytest.raises(ConfigError, match=r"d=7 .* 1\.\.6"):
        named_prior("paper").sample(derive_seeds(0, count=1), 7)


@pytest.mark.parametrize("prior", PRIORS.values(), ids=lambda p: p.name)
def test_description_round_trip(prior: GPPrior) -> None:
    assert GPPrior.from_dict(prior.to_dict()) == prior
    with pytest.raises(ConfigError, match="colour"):
        GPPrior.from_dict({**prior.to_dict(), "colour": "red"})


@pytest.mark.parametrize(
    "field", [f.name for f in dataclasses.fields(GPPrior) if f.name not in LATER]
)
def test_descriptions_must_be_complete(field: str) -> None:
    whole = PRIORS["paper"].to_dict()
    with pytest.raises(ConfigError, match=f"{field} missing"):
        GPPrior.from_dict({name: value for name, value in whole.items() if name != field})


def test_descriptions_without_warps_are_those_of_priors_without() -> None:
    old = {k: v for k, v in PRIORS["paper"].to_dict().items() if k not in LATER}
    assert GPPrior.from_dict(old) == PRIORS["paper"]


@pytest.mark.parametrize(
    "values",
    [
        "paper",
        None,
        {**PRIORS["paper"].to_dict(), "mean": {"loc": 0.0, "scale": 1.0, "log": False}},
        {**PRIORS["paper"].to_dict(), "mean": 0.0},
        {
            **PRIORS["paper"].to_dict(),
            "noise_sd": {"loc": "x", "scale": 1, "log": 1, "dim_power": 0},
        },
        {**PRIORS["paper"].to_dict(), "max_dim": "six"},
    ],
)
def test_other_things_are_no_descriptions(values: Any) -> None:
    with pytest.raises(ConfigError, match="not a GPPrior description"):
        GPPrior.from_dict(values)


@pytest.mark.parametrize("name", ["paper", "real"])
def test_latents_map_to_hyperparameters_and_back(name: str) -> None:
    prior, d = PRIORS[name], 3
    z = torch.randn(5, prior.latent_size(d), generator=generator(1), dtype=torch.float64)
    hyper = prior.hyperparameters(z, d)
    found = [prior.lengthscale.latent(hyper.lengthscale, d)]
    for field in ("output_variance", "noise_sd", "mean"):
        found.append(getattr(prior, field).latent(getattr(hyper, field), d)[:, None])
    if hyper.warp is not None:
        shape, shift = hyper.warp.unbind(-2)
        found += [prior.warp_shape.latent(shape, d), prior.warp_shift.latent(shift, d)]
    if hyper.roughness is not None:
        odds = hyper.roughness / (1.0 - hyper.roughness)
        found.append(prior.rough_odds.latent(odds, d)[:, None])
    expected = z.clone()
    if prior.output_variance.scale == 0.0:
        expected[:, d] = 0.0
    assert torch.allclose(torch.cat(found, dim=-1), expected, atol=1e-9)


def test_a_share_of_the_functions_is_warped() -> None:
    prior, seeds = PRIORS["real"], derive_seeds(3, count=2000)
    hyper = prior.sample(seeds, 2)
    assert hyper.warp is not None
    assert hyper.roughness is not None
    warped = hyper.warp.flatten(1).ne(0.0)
    assert torch.equal(warped.any(1), warped.all(1))  # in all coordinates, or in none
    share = warped.all(1).double().mean()
    assert abs(share - prior.warp_probability) < 4 * 0.5 / math.sqrt(len(seeds))
    for row, marginal in ((0, prior.warp_shape), (1, prior.warp_shift)):
        values = hyper.warp[warped.all(1), row]
        assert abs(values.mean() - marginal.loc) < 4 * marginal.scale / math.sqrt(values.numel())
        assert values.std() == pytest.approx(marginal.scale, rel=0.1)
    log_odds = (hyper.roughness / (1.0 - hyper.roughness)).log()
    assert abs(log_odds.mean() - prior.rough_odds.loc) < 4 * 2.0 / math.sqrt(len(seeds))
    assert log_odds.std() == pytest.approx(prior.rough_odds.scale, rel=0.1)


def test_a_prior_with_some_warps_is_a_mixture_of_two() -> None:
    prior = PRIORS["real"]
    (plain_share, plain), (warped_share, warped) = prior.models
    assert plain_share + warped_share == 1.0
    assert warped_share == prior.warp_probability
    assert not plain.warped
    assert warped.warped
    assert plain.models == [(1.0, plain)]
    assert warped.models == [(1.0, warped)]
    assert PRIORS["paper"].models == [(1.0, PRIORS["paper"])]
    always = dataclasses.replace(prior, warp_probability=1.0)
    assert always.models == [(1.0, always)]
    assert prior.latent_size(3) == warped.latent_size(3) == plain.latent_size(3) + 6


def test_hyperparameters_with_and_without_warps_go_together() -> None:
    (_, plain), (_, warped) = PRIORS["real"].models
    seeds = derive_seeds(4, count=5)
    parts = plain.sample(seeds[:2], 3), warped.sample(seeds[2:], 3)
    whole = Hyperparameters.cat(parts)
    assert whole.warp is not None
    assert parts[1].warp is not None
    assert torch.equal(whole.warp[:2], torch.zeros(2, 2, 3, dtype=torch.float64))
    assert torch.equal(whole.warp[2:], parts[1].warp)
    assert torch.equal(whole.lengthscale[:2], parts[0].lengthscale)
    assert Hyperparameters.cat([parts[0], parts[0]]).warp is None
    single = whole.to(torch.float32)[3]
    assert single.warp is not None
    assert single.warp.dtype == torch.float32
    assert single.warp.shape == (2, 3)
