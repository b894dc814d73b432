"""Weights as an argument: the name of a network that comes with amortes, or a file."""

from pathlib import Path
from typing import Any

import click

from amortes.pretrained import names, weights_path
from amortes.training.export import Card


class Weights(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """Turns `kernel-real` or `runs/k.safetensors` into the path of a file."""

    name = "weights"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; whether there is a good file is found out by loading it."""
        return weights_path(value) if value in names() else Path(value)


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
            f"{', gains of another network' * bool(stage.get('teacher'))}"
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
