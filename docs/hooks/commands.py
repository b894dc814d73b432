"""A MkDocs hook: `<!-- commands -->` becomes the help of every command of `amortes`."""

from collections.abc import Iterator

import click
from mkdocs.structure.pages import Page

from amortes.cli import app

PLACE = "<!-- commands -->"
WIDTH = 88


def on_page_markdown(markdown: str, page: Page, **others: object) -> str:
    """The page with the commands in the place for them."""
    if PLACE not in markdown:
        return markdown
    return markdown.replace(PLACE, "\n\n".join(_described(app, "amortes", 2)))


def _described(command: click.Command, name: str, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    yield f"{'#' * level} {name}\n\n```{{ .text .commands }}\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            assert found is not None
            yield from _described(found, f"{name} {sub}", min(level + 1, 3))
