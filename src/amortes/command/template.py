"""A command with placeholders, and how a config gets into it.

    ./train.sh {lr} --layers={layers}      values in place of {name}; {{name}} stays as {name}
    $AMORTES_LR, $AMORTES_LAYERS           the same values in the environment
    $AMORTES_TRIAL_FOLDER                  a folder of the trial's own, also {trial_folder}
    $AMORTES_TRIAL_FOLDER/config.json      the whole config

Strings are passed as they are, everything else as JSON has it (numbers in full precision, true,
false, null). A parameter that is not active has no value: a word about it, such as --C={C}, is left
out, and in a text of several words (a script for `bash -c`) {C} is replaced by nothing.
"""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amortes.errors import ConfigError
from amortes.files import exists
from amortes.optimiser import Space
from amortes.optimiser.space import Config

FOLDER, NUMBER = "trial_folder", "trial_number"
PREFIX = "AMORTES_"
# A brace after $ belongs to a shell: ${HOME}.
PLACEHOLDER = re.compile(r"\{\{([^{}]+)\}\}|(?<!\$)\{([^{}]+)\}")
# What else may be in braces, such as {print $1}, is no placeholder.
NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Template:
    """The words of a command, checked against the names of a space."""

    words: Sequence[str]
    space: Space

    def __post_init__(self) -> None:
        if not self.words:
            raise ConfigError("the command is missing; write it after --.")
        names = [*self.space.parameters, FOLDER, NUMBER]
        for word in self.words:
            for _, name in PLACEHOLDER.findall(word):
                if NAME.fullmatch(name) and name not in names:
                    raise ConfigError(
                        f"the command uses {{{name}}}, which is not a parameter; choose from "
                        f"{', '.join(names)}. To pass {{{name}}} itself, write {{{{{name}}}}}."
                    )
        variables = [variable(name) for name in names]
        if twice := {name for name in variables if variables.count(name) > 1}:
            raise ConfigError(
                f"two parameters would share the environment variable {min(twice)}; rename one of "
                f"them."
            )
        program = self.words[0]
        if len(self.words) == 1 and len(program.split()) > 1 and not exists(program):
            raise ConfigError(
                f"the command {program!r} is quoted as a whole; leave out the quotes around it, or "
                f"write `bash -c` before it."
            )
        if not PLACEHOLDER.search(program) and shutil.which(program) is None:
            raise ConfigError(
                f"cannot find the program {program!r}, or it is not executable (`chmod +x` makes a "
                f"script executable)."
            )

    @property
    def unused(self) -> list[str]:
        """Parameters that vary and that no argument has, unless one has the trial's folder."""
        used = {name for word in self.words for _, name in PLACEHOLDER.findall(word)}
        return [] if FOLDER in used else [name for name in self.space.free if name not in used]

    def fill(self, config: Config, number: int, folder: Path) -> list[str]:
        """The words with the values of a config, but for those about inactive parameters."""
        values = _values(config, number, folder)
        inactive = self.space.conditions.keys() - config.keys()

        def filled(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            if match[2] and name in inactive:
                return ""
            if name not in values and not NAME.fullmatch(name):
                return match[0]
            return f"{{{name}}}" if match[1] else values[name]

        return [
            PLACEHOLDER.sub(filled, word)
            for word in self.words
            if len(word.split()) > 1 or not inactive & {n for _, n in PLACEHOLDER.findall(word)}
        ]

    @staticmethod
    def environment(config: Config, number: int, folder: Path) -> dict[str, str]:
        """Variables to add to the environment."""
        return {variable(name): text for name, text in _values(config, number, folder).items()}


def variable(name: str) -> str:
    """The environment variable of a parameter: AMORTES_ and its name in capitals."""
    return PREFIX + re.sub(r"\W", "_", name).upper()


def _values(config: Mapping[str, Any], number: int, folder: Path) -> dict[str, str]:
    values = {**config, FOLDER: str(folder), NUMBER: number}
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in values.items()}
