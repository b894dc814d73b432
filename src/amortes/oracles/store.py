"""Results of the oracles, kept because they take minutes: in the package, or in a folder.

Those of the named priors are part of the package; others are kept in a folder of the user's:
`~/.cache/amortes`, or what the environment variable `AMORTES_CACHE` says. A file belongs to one
prior and one set of settings, whose hash it carries, and is replaced, not trusted, when damaged.
(JSON that people can read and ship; `joblib.Memory` and `diskcache` would unpickle.)
"""

import hashlib
import importlib.resources
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from amortes.errors import FileError
from amortes.files import AnyPath, cache_folder, read_json, write_text
from amortes.prior.gp import LATER, GPPrior

Entry = dict[str, Any]


class Store:
    """Entries by label, all of one kind, one prior and one set of settings."""

    def __init__(
        self, kind: str, prior: GPPrior, settings: Mapping[str, Any], cache: AnyPath | None = None
    ) -> None:
        self.prior = prior
        # What came later does not count where it changes nothing: entries of before stay valid.
        description = {
            name: value
            for name, value in prior.to_dict().items()
            if name != "name" and not (name in LATER and getattr(prior, name) == LATER[name])
        }
        text = json.dumps({"prior": description, **settings}, sort_keys=True)
        self.key = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.path = cache_folder(cache) / f"{kind}-{self.key}.json"
        data = importlib.resources.files("amortes.oracles") / "data" / f"{kind}-{prior.name}.json"
        with importlib.resources.as_file(data) as source:
            self._shipped = self._read(source)

    def find(self, label: str, fits: Callable[[Entry], bool]) -> Entry | None:
        """The entry with this label, shipped or cached, that belongs to the task at hand."""
        for entries in (self._shipped, self._read(self.path)):
            if label in entries and fits(entries[label]):
                return entries[label]
        return None

    def put(self, label: str, entry: Entry) -> None:
        """Add an entry to the cache."""
        entries = self._read(self.path) | {label: entry}
        header = json.dumps({"settings": self.key, "prior": self.prior.to_dict()})
        rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in entries.items())
        # One line per entry: small, and still readable.
        write_text(self.path, f'{header[:-1]}, "entries": {{\n{rows}\n}}}}\n')

    def _read(self, path: Path) -> dict[str, Entry]:
        """The entries in a file; none if it is missing, damaged, or made with other settings."""
        try:
            document = read_json(path)
        except FileError:
            return {}
        whole = isinstance(document, dict) and isinstance(document.get("entries"), dict)
        if not whole or document.get("settings") != self.key:
            return {}
        entries: dict[str, Entry] = document["entries"]
        return entries


def rounded(values: Any, digits: int = 6) -> Any:
    """Nested lists of numbers with so many digits after the point."""
    if isinstance(values, list):
        return [rounded(value, digits) for value in values]
    return round(values, digits)
