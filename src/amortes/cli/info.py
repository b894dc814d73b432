"""`amortes info`: the trained networks that come with amortes, and what is known about them."""

import dataclasses
import json
from pathlib import Path

import click

from amortes.cli.console import json_option, show_rows
from amortes.cli.weights import Weights, card_rows
from amortes.pretrained import names, weights_path
from amortes.training.export import load_network


@click.command()
@click.argument("weights", required=False, type=Weights())
@json_option
def info(weights: Path | None, as_json: bool) -> None:
    """Show the card of WEIGHTS, or of every network that comes with amortes, the default first.

    A card tells the architecture, the prior and how the weights were trained and scored; the
    scores are those of `amortes evaluate`.

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
