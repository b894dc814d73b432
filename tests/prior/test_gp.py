import dataclasses
import math
from typing import Any

import pytest
import torch

from amortes.errors import ConfigError
from amortes.prior.gp import PRIORS, GPPrior, Marginal, named_prior
from amortes.random import derive_seeds


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
    whole = PRIORS["robust"].sample(seeds, 3)
    part = PRIORS["robust"].sample(seeds[3:4], 3)
    for a, b in zip(whole[3:4].tensors(), part.tensors(), strict=True):
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
    with pytest.raises(ConfigError, match="paper, paper-1d, robust"):
        named_prior("paperr")
    with pytest.raises(ConfigError, match=r"d=7 .* 1\.\.6"):
        named_prior("paper").sample(derive_seeds(0, count=1), 7)


@pytest.mark.parametrize("prior", PRIORS.values(), ids=lambda p: p.name)
def test_description_round_trip(prior: GPPrior) -> None:
    assert GPPrior.from_dict(prior.to_dict()) == prior
    with pytest.raises(ConfigError, match="colour"):
        GPPrior.from_dict({**prior.to_dict(), "colour": "red"})


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(GPPrior)])
def test_descriptions_must_be_complete(field: str) -> None:
    whole = PRIORS["paper"].to_dict()
    with pytest.raises(ConfigError, match=f"{field} missing"):
        GPPrior.from_dict({name: value for name, value in whole.items() if name != field})


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
