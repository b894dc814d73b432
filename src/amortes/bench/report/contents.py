"""What a report may have, from contents.toml: sections, their figures and tables, and the prose.

Light, as commands list the names.
"""

import tomllib
from importlib.resources import files
from typing import Any

CONTENTS: dict[str, dict[str, Any]] = tomllib.loads(
    (files("amortes.bench.report") / "contents.toml").read_text(encoding="utf-8")
)
FIGURES: dict[str, str] = {
    f: name for name, part in CONTENTS.items() for f in part.get("figures", ())
}
"""The section of each figure, by the name that `--figure` takes."""
TABLES: dict[str, str] = {t: name for name, part in CONTENTS.items() for t in part["tables"]}
"""The section of each table."""
