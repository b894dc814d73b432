"""What can be wrong with a request, each with the status of HTTP that says so."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from amortes.errors import AmortesError


class LabError(AmortesError):
    """A request that cannot be met; the message is shown to its user."""

    status: ClassVar[int] = 422


class NotFoundError(LabError):
    """There is no such study or trial."""

    status: ClassVar[int] = 404


class ConflictError(LabError):
    """The trial is no longer what the request takes it for."""

    status: ClassVar[int] = 409


class ChangedError(LabError):
    """The study has changed since the version that the request names."""

    status: ClassVar[int] = 412


class ReadOnlyError(LabError):
    """The run belongs to a program."""

    status: ClassVar[int] = 423


@dataclass(frozen=True)
class Problem:
    """One mistake in a form: the field, as a path such as `parameters.0.low`, and what is wrong."""

    at: str
    message: str


class FormError(LabError):
    """Mistakes in a form, each with its field."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(" ".join(problem.message for problem in problems))
        self.problems = list(problems)
