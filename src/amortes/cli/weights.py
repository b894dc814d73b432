"""Weights as an argument, the name of a network or a file; and `amortes info` about them."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import click

from amortes.cli.console import ERR, PATH, json_option, option, set_option, show_rows
from amortes.errors import ConfigError, FileError
from amortes.files import read_json
from amortes.pretrained import names, weights_path
from amortes.training.export import Card, adjust, load_network
from amortes.training.export import export as write_network
from amortes.training.recipes import needs_alpha
from amortes.training.run import TrainingRun


class Weights(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """Turns `kernel-real` or `runs/k.safetensors` into the path of a file."""

    name = "weights"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; whether there is a good file is found out by loading it."""
        return weights_path(value) if value in names() else Path(value)


@click.command()
@click.argument("weights", required=False, type=Weights())
@json_option
def info(weights: Path | None, as_json: bool) -> None:
    """Show what WEIGHTS contains; without it, all networks that come with amortes.

    WEIGHTS is the name of a network or a file. Its card shows the architecture, the prior, how it
    was trained, and its scores (from `amortes evaluate`). The first network listed is the default.

    \b
    Examples:
      amortes info
      amortes info kernel-paper --json
      amortes info runs/mine.safetensors
    """
    files = [weights] if weights else [weights_path(name) for name in names()]
    cards = {file.stem: load_network(file)[1] for file in files}
    if as_json:
        click.echo(json.dumps({k: dataclasses.asdict(v) for k, v in cards.items()}, indent=2))
        return
    for (name, card), file in zip(cards.items(), files, strict=True):
        size = f"{file.stat().st_size / 1e3:,.0f} kB"
        show_rows(card_rows(card), as_json=False, title=f"{name} ({size})")


def card_rows(card: Card) -> list[dict[str, str]]:
    """The card, a line per fact."""
    facts = {
        "network": card.network,
        "parameters": f"{card.parameters:,}",
        "prior": f"{card.prior['name']}, d in {card.prior['min_dim']}..{card.prior['max_dim']}",
    }
    for name, stage in card.stages.items():
        recipe, tasks = stage["recipe"], stage["recipe"]["tasks"]
        facts[name] = (
            f"recipe {recipe['name']}, step {stage['step']} of {recipe['steps']}, "
            f"{tasks['min_context']}..{tasks['max_context']} points, "
            f"seed {recipe['seed']}, {stage['seconds'] / 3600:.2f} h{_before(stage)}"
        )
    facts |= {f"score: {name}": str(value) for name, value in card.scores.items()}
    facts["licence"] = card.licence
    return [{"card": name, "value": value} for name, value in facts.items()]


def _before(stage: dict[str, Any]) -> str:
    """What the weights had learnt when a stage began."""
    steps, seconds = 0, 0.0
    while stage := stage.get("start") or {}:
        steps, seconds = steps + stage["step"], seconds + stage["seconds"]
    return f" after {steps} steps, {seconds / 3600:.2f} h before" if steps else ""


@click.command()
@click.argument("source", type=Weights(), metavar="RUN|WEIGHTS")
@option("-o", "--output", type=PATH, required=True, help="File to write.")
@option("--scores", "scores_file", type=PATH,
        help="JSON file with scores to store in the card.")  # fmt: skip
@option("--alpha", type=Weights(),
        help="Take the gains from this trained network (name or file); for base runs.")  # fmt: skip
@set_option("the network that does not affect its weights, such as particles.candidates=8")
@json_option
def export(
    source: Path,
    output: Path,
    scores_file: Path | None,
    alpha: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write the best weights of RUN to one safetensors file, and print its card.

    The file contains the weights, architecture, prior, recipe, steps, seed, scores and licence.
    Loading it never runs code. If there is an alpha stage, export its run: it includes the base.

    With WEIGHTS, a file or a name from `amortes info`, it writes a copy with other settings or
    scores. Of the last two examples below, the first uses more candidates for hyperparameters, the
    second twice as many draws of the optimum, which kernel networks without an alpha stage take.

    \b
    Examples:
      amortes export runs/k1 -o mine.safetensors
      amortes export runs/k1 -o mine.safetensors --scores scores.json
      amortes export runs/k1 -o mine.safetensors --alpha kernel-real
      amortes export kernel-real -o slower.safetensors --set particles.candidates=8
      amortes export kernel-paper -o thorough.safetensors --set landmarks.optima=64 \\
          --set landmarks.draws=128
    """
    scores = None if scores_file is None else read_json(scores_file)
    if not isinstance(scores, dict | None):
        found = type(scores).__name__
        raise FileError(f"{scores_file}: expected a JSON object of scores, not a {found}.")
    if not source.is_file():
        card = write_network(TrainingRun.open(source), output, scores, overrides, alpha)
    elif alpha is None:
        card = adjust(source, output, scores, overrides)
    else:
        raise ConfigError(f"alpha: only the folder of a base run takes gains, not {source}.")
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(card), indent=2))
        return
    show_rows(card_rows(card), as_json=False, title=str(output))
    if needs_alpha(card.network) and "alpha" not in card.stages:
        ERR.print(
            f"It has no gains, because {source} is a base run. Train an alpha stage on it, and "
            f"export that run."
        )
