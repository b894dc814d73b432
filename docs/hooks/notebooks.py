"""A MkDocs hook: pages with `execute: true` in their front matter are run when the site is built.

Their Python blocks are the cells of a notebook, executed in a real Jupyter kernel. What each cell
prints or shows goes below it, and the executed notebook is offered for download. An exception ends
the build. `tests/test_docs.py` runs the same notebooks. With DRAFT=1 in the environment nothing is
run, which is quick.
"""

import base64
import os
import re
import tempfile
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbclient import NotebookClient

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
PICTURES = {"image/svg+xml": "svg", "image/png": "png"}
V4: Any = nbformat.v4  # untyped


def executed(markdown: str) -> Any:
    """The notebook of a page, with its outputs."""
    cells = []
    for i, part in enumerate(BLOCK.split(markdown)):
        if i % 2:
            cells.append(V4.new_code_cell(part.rstrip("\n")))
        elif part.strip():
            cells.append(V4.new_markdown_cell(part.strip("\n")))
    notebook = V4.new_notebook(cells=cells)
    with tempfile.TemporaryDirectory() as folder:
        where = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()
    return notebook


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with outputs, and a link to its notebook."""
    if not page.meta.get("execute") or os.environ.get("DRAFT"):
        return markdown
    notebook = executed(markdown)
    stem = page.file.src_uri.removesuffix(".md")
    name = stem.rpartition("/")[2]
    parts: list[str] = []
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for place, output in enumerate(cell.outputs):
            kind, content = _shown(output)
            if kind in PICTURES.values():
                picture = f"{stem}-{number}-{place}.{kind}"
                files.append(File.generated(config, picture, content=content))
                parts.append(f"![output]({picture.rpartition('/')[2]}){{ .output }}")
            elif kind == "html":
                parts.append(f'<div class="output">{content}</div>')
            elif content.strip():
                parts.append(f"```{{ .text .output }}\n{content.rstrip()}\n```")
    written = nbformat.writes(notebook)  # type: ignore[no-untyped-call]
    files.append(File.generated(config, f"{stem}.ipynb", content=written))
    parts.append(f"[Download this page as a notebook]({name}.ipynb)")
    return "\n\n".join(parts)


def _shown(output: Any) -> tuple[str, Any]:
    """What a reader sees of an output: its kind, and the content."""
    if output.output_type == "stream":
        return "text", output.text
    for mime, kind in PICTURES.items():
        if mime in output.data:
            data = output.data[mime]
            return kind, data if kind == "svg" else base64.b64decode(data)
    if "text/html" in output.data:
        return "html", re.sub(r"\n\s*\n", "\n", output.data["text/html"])
    return "text", output.data.get("text/plain", "")
