"""`amortes export`: from a run, or other weights, to one file with weights and their card."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import click

from amortes.cli.console import ERR, PATH, json_option, option, set_option, show_rows
from amortes.cli.weights import Weights, card_rows
from amortes.errors import ConfigError, FileError
from amortes.files import read_json
from amortes.training.architectures import learns_gains
from amortes.training.export import adjust
from amortes.training.export import export as write_network
from amortes.training.run import TrainingRun


@click.command()
@click.argument("source", type=Weights(), metavar="RUN|WEIGHTS")
@option("-o", "--output", type=PATH, required=True, help="File to write.")
@option("--scores", "scores_file", type=PATH,
        help="JSON file with scores to store in the card.")  # fmt: skip
@option("--alpha", type=Weights(),
        help="Take the gains from this trained network (name or file); for base runs.")  # fmt: skip
@set_option("the network that does not affect its weights, such as landmarks.optima=64")
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
    scores. The last example below uses twice as many draws of the optimum.

    \b
    Examples:
      amortes export runs/k1 -o kernel-paper.safetensors
      amortes export runs/k1 -o kernel-paper.safetensors --scores scores.json
      amortes export runs/k1 -o thorough.safetensors --set landmarks.optima=64
      amortes export runs/t2 -o longer.safetensors --alpha transformer-paper
      amortes export kernel-real -o slower.safetensors --set landmarks.optima=64 \\
          --set landmarks.draws=128
    """
    scores = None if scores_file is None else _read_scores(scores_file)
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
    if learns_gains(card.network) and "alpha" not in card.stages:
        ERR.print(
            f"It has no gains, because {source} is a base run. Train an alpha stage on it, and "
            f"export that run."
        )


def _read_scores(file: Path) -> dict[str, Any]:
    scores = read_json(file)
    if not isinstance(scores, dict):
        raise FileError(f"{file}: expected a JSON object of scores, not a {type(scores).__name__}.")
    return scores
