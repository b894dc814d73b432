"""One file per network: weights, and a card that says what they are.

The card travels in the header of the safetensors file: architecture and its configuration, prior,
the recipe, steps, seed and time of each stage, scores, licence. Loading rebuilds the network from
the card and then demands exactly its tensors; no code in the file is ever run.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from amortes.errors import ConfigError, FileError
from amortes.files import AnyPath
from amortes.nets.base import Network
from amortes.nets.kernel import KernelConfig
from amortes.prior.gp import GPPrior
from amortes.training import settings
from amortes.training.recipes import build_network, read_config
from amortes.training.run import TrainingRun
from amortes.training.tensorfile import read_tensors, write_tensors

FORMAT, VERSION = "amortes-network", 1
LICENCE = "MIT"


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is known about the weights in a file; all values are those of JSON."""

    network: str  # kind of the architecture
    config: dict[str, Any]
    prior: dict[str, Any]
    # For each trained stage: its recipe, the corpus, the step of the weights, seconds of training.
    stages: dict[str, dict[str, Any]]
    scores: dict[str, Any]
    parameters: int
    licence: str = LICENCE


def export(
    run: TrainingRun,
    path: AnyPath,
    scores: Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
    alpha: AnyPath | None = None,
) -> Card:
    """Write the best averaged weights of a run to `path`, with its card.

    A base run gives a network that predicts; the run of an alpha stage also one that knows gains.
    A base run may take the gains of the network in the file `alpha`, which do not depend on it.
    `overrides`, such as "particles.candidates=8", change settings of the network on which no
    weights depend: the effort of what is computed.
    """
    recipe, stage = run.recipe, run.describe()
    stages: dict[str, Any] = {recipe.stage: stage}
    if recipe.stage == "alpha":
        base = run.config["base"]  # None if nothing is learned there
        stages = {"alpha": stage} if base is None else {"base": base, "alpha": stage}
    weights, _ = run.weights()
    config, source = recipe.config, None
    if alpha is not None:
        source, stages["alpha"] = _gains_in(alpha, run)
        if isinstance(config, KernelConfig):  # whose base stage has no gain network
            config = dataclasses.replace(config, gains=source.config.gains)
    config = settings.override(config, overrides)
    network = build_network(recipe.network, config, recipe.prior)
    if source is not None:
        weights = _with_gains(weights, network, source)
    fit = f"do not fit its recipe{' with these settings' * bool(overrides)}"
    _require_fit(network, weights, f"the weights in {run.folder} {fit}")
    card = Card(
        network=recipe.network,
        config=settings.to_dict(config),
        prior=settings.to_dict(recipe.prior),
        stages=stages,
        scores=dict(scores or {}),
        parameters=sum(p.numel() for p in network.parameters()),
    )
    write_tensors(path, weights, vars(card), kind=FORMAT, version=VERSION)
    return card


def adjust(
    source: AnyPath,
    path: AnyPath,
    scores: Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
) -> Card:
    """Write the network in the file `source` to `path`, with other settings or scores.

    As in `export`, no weights may depend on the settings. Scores of other settings are left out.
    """
    network, card = load_network(source)
    config = settings.override(network.config, overrides)
    tensors, _ = read_tensors(source, kind=FORMAT, version=VERSION)
    expected = build_network(card.network, config, network.prior)
    _require_fit(expected, tensors, f"the weights in {source} do not fit these settings")
    kept = {} if overrides else card.scores
    card = dataclasses.replace(
        card, config=settings.to_dict(config), scores=kept if scores is None else dict(scores)
    )
    write_tensors(path, tensors, vars(card), kind=FORMAT, version=VERSION)
    return card


def _gains_in(file: AnyPath, run: TrainingRun) -> tuple[Network[Any], dict[str, Any]]:
    """The network in a file whose gains a base run may take, and what is known of these."""
    source, card = load_network(file)
    alike = card.network == run.recipe.network and source.prior == run.recipe.prior
    if run.recipe.stage != "base" or "alpha" not in card.stages or not alike:
        raise ConfigError(
            f"alpha: {file} must have gains of the same kind of network for the same prior as "
            f"{run.folder}, and that must be a base run."
        )
    return source, card.stages["alpha"]


def _with_gains(
    weights: Mapping[str, Tensor], network: Network[Any], source: Network[Any]
) -> dict[str, Tensor]:
    """The weights of a base run, with those of gains, and what it does not have, from `source`."""
    of_gains = {id(parameter) for parameter in network.alpha_parameters()}
    found, result = source.state_dict(), dict(weights)
    for name, target in network.state_dict(keep_vars=True).items():
        if id(target) in of_gains or name not in weights:
            result[name] = found[name].to(target.dtype)
    return result


def load_network(path: AnyPath) -> tuple[Network[Any], Card]:
    """The network in a file written by `export`, ready to use, and its card.

    A `FileError` says what is wrong with any other file.
    """
    tensors, about = read_tensors(path, kind=FORMAT, version=VERSION)
    try:
        card = Card(**about)
        config = read_config(card.network, card.config)
        prior = GPPrior.from_dict(card.prior)
        network = build_network(card.network, config, prior)
        points = None
        if not network.any_size:
            points = card.stages["base"]["recipe"]["tasks"]["max_context"]
        elif any(True for _ in network.parameters()) and not card.stages:
            raise KeyError("stages")
    except (ConfigError, TypeError, KeyError) as error:
        reason = f"its card has no {error}." if isinstance(error, KeyError) else error
        raise FileError(
            f"{path} holds a network this version of amortes cannot build: {reason}"
        ) from error
    _require_fit(network, tensors, f"{path} does not fit its own card")
    network.load_state_dict(tensors)
    network.trained_points = points
    return network.to(network.inference_dtype).requires_grad_(False).eval(), card


def _require_fit(network: Network[Any], found: Mapping[str, Tensor], otherwise: str) -> None:
    """Raise a `FileError` unless the found tensors can be those of the network."""
    expected = network.state_dict()
    problems = [f"{name} is missing" for name in expected if name not in found]
    problems += [f"{name} is unknown" for name in found if name not in expected]
    for name in expected.keys() & found.keys():
        wanted, given = expected[name], found[name]
        if (wanted.shape, wanted.dtype) != (given.shape, given.dtype):
            problems.append(
                f"{name} is {given.dtype} {tuple(given.shape)}, "
                f"not {wanted.dtype} {tuple(wanted.shape)}"
            )
        elif given.is_floating_point() and not torch.isfinite(given).all():
            problems.append(f"{name} has values that are not finite")
    if problems:
        raise FileError(f"{otherwise}: {'; '.join(sorted(problems))}.")
