"""Where a stage starts: a new network, or for the alpha stage one whose base is trained.

Both may go on with what a network in a file has learnt.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from amortes.errors import ConfigError, differences
from amortes.files import AnyPath
from amortes.nets.base import Network
from amortes.prior.gp import GPPrior
from amortes.training.export import load_network
from amortes.training.recipes import Recipe, build_network, recipe
from amortes.training.run import TrainingRun


@dataclass(frozen=True)
class Base:
    """A trained base: of a run of the base stage, or of a network in a file."""

    place: str  # where it was found
    recipe: Recipe  # of the base stage, with the configuration of the network
    weights: Mapping[str, Tensor]
    about: dict[str, Any] | None  # what a card says about its training; None: there was none

    @classmethod
    def open(cls, source: "AnyPath | Base") -> "Base":
        """The base in the run folder or file `source`; one that is open already as it is."""
        if isinstance(source, Base):
            return source
        if not Path(source).is_file():
            run = TrainingRun.open(source)
            if run.recipe.stage != "base":
                raise ConfigError(
                    f"base: {source} is a run of stage {run.recipe.stage}; needed is stage base."
                )
            return cls(str(source), run.recipe, run.weights()[0], run.describe())
        network, card = load_network(source)
        about = card.stages.get("base")
        if about is None:  # nothing in it is learned
            made = recipe(card.network, "base", network.prior, config=network.config)
        else:
            made = Recipe.from_dict(about["recipe"])
        made = dataclasses.replace(made, config=network.config)
        return cls(str(source), made, network.state_dict(), about)


def initial_network(
    recipe: Recipe, base: AnyPath | Base | None = None, start: AnyPath | None = None
) -> Network[Any]:
    """The network a recipe starts from; the alpha stage takes the weights of `base`, see `Base`.

    The alpha part of the configuration may differ from that of the base: only the base's own
    parameters are taken over. Those that the stage is to learn begin with their values in the file
    `start`, if there is one, whose prior may be another.
    """
    if (recipe.stage == "alpha") != (base is not None):
        raise ConfigError("base: the alpha stage needs a base network; a base has none.")
    network = build_network(recipe.network, recipe.config, recipe.prior, recipe.seed)
    if base is not None:
        source = Base.open(base)
        what = f"base: {source.place}"
        if source.recipe.network != recipe.network:
            raise ConfigError(
                f"{what} is a {source.recipe.network} network; needed is a {recipe.network}."
            )
        _require_prior(source.recipe.prior, recipe, what)
        _take(network, source.weights, network.base_parameters(), what)
        with torch.no_grad():
            network.start_alpha()
    if start is not None:
        learner, card = load_network(start)
        if recipe.stage not in card.stages or card.network != recipe.network:
            raise ConfigError(
                f"start: {start} is a {card.network} network with stages {', '.join(card.stages)}; "
                f"needed is a {recipe.network} network with stage {recipe.stage}."
            )
        chosen = network.base_parameters() if base is None else network.alpha_parameters()
        _take(network, learner.state_dict(), chosen, f"start: {start}")
    return network


@torch.no_grad()
def _take(
    network: Network[Any],
    weights: Mapping[str, Tensor],
    parameters: Iterator[nn.Parameter],
    source: str,
) -> None:
    """Give these parameters of a network, all of them, and its buffers the values in `weights`."""
    needed = {id(p) for p in parameters}
    for name, target in network.state_dict(keep_vars=True).items():
        fits = name in weights and weights[name].shape == target.shape
        is_buffer = not isinstance(target, nn.Parameter)
        if fits and (is_buffer or id(target) in needed):
            target.copy_(weights[name])
        elif id(target) in needed:
            raise ConfigError(
                f"{source}: parameter {name} does not fit the configuration of this run; give both "
                "the same settings of the network."
            )


def _require_prior(trained_on: GPPrior, recipe: Recipe, what: str) -> None:
    if trained_on != recipe.prior:
        lines = differences(trained_on.to_dict(), recipe.prior.to_dict())
        raise ConfigError(
            f"{what} was trained on prior {trained_on.name!r}, not on {recipe.prior.name!r}. "
            f"Differences: {'; '.join(lines)}."
        )
