"""Where a stage starts: a new network, or for the alpha stage one whose base is trained.

The alpha stage may have a teacher as well.
"""

import os
from typing import Any

import torch

from amortes.errors import ConfigError
from amortes.nets.base import Network
from amortes.prior.differences import differences
from amortes.prior.gp import GPPrior
from amortes.training.architectures import build_network
from amortes.training.export import load_network
from amortes.training.recipes import Recipe
from amortes.training.run import Run


def initial_network(recipe: Recipe, base: str | os.PathLike[str] | None = None) -> Network[Any]:
    """The network a recipe starts from; the alpha stage takes the weights of the run `base`.

    The alpha part of the configuration may differ from that of the base run: only the base's own
    parameters are taken over.
    """
    if (recipe.stage == "alpha") != (base is not None):
        raise ConfigError("base: the alpha stage needs the run of a base network; a base has none.")
    network = build_network(recipe.network, recipe.config, recipe.prior, recipe.seed)
    if base is None:
        return network
    source = Run.open(base)
    if source.recipe.stage != "base" or source.recipe.network != recipe.network:
        raise ConfigError(
            f"base: {base} is a run of stage {source.recipe.stage}, network "
            f"{source.recipe.network}; needed is stage base, network {recipe.network}."
        )
    _require_prior(source.recipe.prior, recipe, f"base: {base}")
    weights, _ = source.weights()
    needed = {id(p) for p in network.base_parameters()}
    with torch.no_grad():
        for name, target in network.state_dict(keep_vars=True).items():
            fits = name in weights and weights[name].shape == target.shape
            is_buffer = not isinstance(target, torch.nn.Parameter)
            if fits and (is_buffer or id(target) in needed):
                target.copy_(weights[name])
            elif id(target) in needed:
                raise ConfigError(
                    f"base: parameter {name} of {base} does not fit the configuration of this run; "
                    "give both runs the same settings for the base network."
                )
        network.start_alpha()
    return network


def load_teacher(recipe: Recipe, file: str | os.PathLike[str]) -> Network[Any]:
    """The network in `file`, whose gains an alpha stage is to learn."""
    if recipe.stage != "alpha":
        raise ConfigError("teacher: only the alpha stage can have one.")
    network, card = load_network(file)
    if "alpha" not in card.stages:
        raise ConfigError(f"teacher: the network in {file} knows no gains.")
    _require_prior(network.prior, recipe, f"teacher: {file}")
    return network


def _require_prior(trained_on: GPPrior, recipe: Recipe, what: str) -> None:
    if trained_on != recipe.prior:
        lines = differences(trained_on.to_dict(), recipe.prior.to_dict())
        raise ConfigError(
            f"{what} was trained on prior {trained_on.name!r}, not on {recipe.prior.name!r}. "
            f"Differences: {'; '.join(lines)}."
        )
