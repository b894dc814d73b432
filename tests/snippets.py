"""Runs the examples of a Markdown page, in order and in one folder, as a reader would.

    ```python                      executed; names stay for later blocks
    ```text                        right after one: what it prints (numbers may differ)
    ```console                     every line `$ command` is run
    ```toml title="space.toml"     any block with a title: written to that file
    ```sh                          not run: long, or installs something

`python -m tests.snippets README.md docs/index.md` writes what is printed now into the pages.
"""

import contextlib
import io
import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FENCE = re.compile(
    r'^```(?P<kind>\w*)(?:[^\n]*?title="(?P<title>[^"]+)")?[^\n]*\n(?P<body>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")


@dataclass(frozen=True)
class Printed:
    """What a block printed, and what the page says it prints."""

    line: int
    output: str
    claimed: str | None
    span: tuple[int, int] | None  # of the claim in the page


def pages() -> list[Path]:
    """All pages with examples that run, but for those that run when the site is built."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = {page: page.read_text(encoding="utf-8") for page in found}
    return [
        page
        for page, text in texts.items()
        if not text.startswith("---\nexecute: true\n")
        and any(m["kind"] in ("python", "console") for m in FENCE.finditer(text))
    ]


def without_numbers(text: str) -> str:
    """The text with every number as #, and single spaces."""
    return " ".join(NUMBER.sub("#", text).split())


def run_page(page: Path) -> list[Printed]:
    """Run the examples in the current folder."""
    text = page.read_text(encoding="utf-8")
    blocks = list(FENCE.finditer(text))
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    for i, block in enumerate(blocks):
        line = text.count("\n", 0, block.start()) + 2
        if block["title"]:
            Path(block["title"]).write_text(block["body"], encoding="utf-8")
        elif block["kind"] == "console":
            for command in re.findall(r"^\$ (.*)$", block["body"], re.MULTILINE):
                _run(command)
        elif block["kind"] == "python":
            # Blank lines, so that tracebacks have the lines of the page.
            code = compile("\n" * (line - 1) + block["body"], str(page), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(code, names)
            claim = blocks[i + 1] if i + 1 < len(blocks) else None
            gap = text[block.end() : claim.start()].strip() if claim else ""
            if claim is None or claim["kind"] != "text" or gap:
                printed.append(Printed(line, out.getvalue(), None, None))
            else:
                printed.append(Printed(line, out.getvalue(), claim["body"], claim.span("body")))
    return printed


@contextlib.contextmanager
def folder(path: str | os.PathLike[str]) -> Iterator[None]:
    """Work in a folder, and leave the log handlers as they were."""
    before, handlers, level = os.getcwd(), list(logging.root.handlers), logging.root.level
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)


def _run(command: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = re.sub(r"^amortes ", "python -m amortes ", command)
    done = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"},
    )
    if done.returncode:
        raise AssertionError(f"{command}\n{done.stdout}{done.stderr}")


def update(page: Path) -> None:
    """Write what the examples print into the page."""
    with tempfile.TemporaryDirectory() as path, folder(path):
        printed = run_page(page)
    text = page.read_text(encoding="utf-8")
    for example in reversed(printed):
        if example.span is not None:
            start, end = example.span
            text = text[:start] + example.output.rstrip("\n") + "\n" + text[end:]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        update(Path(name).resolve())
