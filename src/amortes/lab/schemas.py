"""What requests may say and what answers look like; the OpenAPI schema is made of these."""

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)

from amortes.lab.about import Prediction
from amortes.lab.errors import Problem

MOST_AT_ONCE = 50  # suggestions on one request
MOST_PARAMETERS = 50  # of a study
MOST_ROWS = 2000  # past results on one request


def decimal(value: Any) -> Any:
    """Text as typed into a form, also with a decimal comma, as a number; else as it is."""
    if not isinstance(value, str):
        return value
    text = value.strip().replace("−", "-")
    if text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    return text or None


Finite = Annotated[float, Field(allow_inf_nan=False)]
Limited = Annotated[int, Field(ge=-(2**48), le=2**48)]
Number = Annotated[Finite, BeforeValidator(decimal)]
MaybeNumber = Annotated[Finite | None, BeforeValidator(decimal)]
Whole = Annotated[Limited, BeforeValidator(decimal)]
MaybeWhole = Annotated[Limited | None, BeforeValidator(decimal)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Unit = Annotated[str, StringConstraints(strip_whitespace=True, max_length=30)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)]
Choice = bool | int | float | Annotated[str, StringConstraints(max_length=200)]
Config = dict[str, Any]


class Strict(BaseModel):
    """A request: unknown fields are mistakes."""

    model_config = ConfigDict(extra="forbid")


class When(Strict):
    """A parameter matters only if another one has one of these values."""

    parameter: Name
    values: Annotated[list[Choice], Field(min_length=1, max_length=100)]


class AnyParameter(Strict):
    """What all parameters have."""

    type: str
    name: Name
    unit: Unit = ""
    when: When | None = None


class FloatParameter(AnyParameter):
    """A number with decimals."""

    type: Literal["float"]
    low: Number
    high: Number
    log: bool = False
    step: MaybeNumber = None  # between values that can be set


class IntParameter(AnyParameter):
    """A whole number."""

    type: Literal["int"]
    low: Whole
    high: Whole
    log: bool = False
    step: MaybeWhole = None


class ChoiceParameter(AnyParameter):
    """One of a list: categorical without, ordinal with an order."""

    type: Literal["categorical", "ordinal"]
    choices: Annotated[list[Choice], Field(max_length=100)]


class FixedParameter(AnyParameter):
    """Something that does not vary."""

    type: Literal["fixed"]
    value: Choice


Parameter = Annotated[
    FloatParameter | IntParameter | ChoiceParameter | FixedParameter, Field(discriminator="type")
]


class LinearConstraint(Strict):
    """Sum of coefficient times parameter at most `upper`."""

    coefficients: dict[str, Number]
    upper: Number


Formula = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
Parameters = Annotated[list[Parameter], Field(min_length=1, max_length=MOST_PARAMETERS)]
Constraints = Annotated[list[LinearConstraint | Formula], Field(max_length=20)]


class SpaceForm(Strict):
    """What is varied."""

    parameters: Parameters
    constraints: Constraints = []
    """Formulas such as `2 * flour + water <= 500`, or their coefficients."""


class NewStudy(SpaceForm):
    """A study to be made."""

    name: Name
    goal: Literal["minimize", "maximize"]
    value: Annotated[str, StringConstraints(strip_whitespace=True, max_length=100)] = "result"
    unit: Unit = ""
    notes: Text = ""
    noisy: bool = True
    batch: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 1
    table: Annotated[str, Field(max_length=1_000_000)] = ""
    """Past results as a table with a header, separated by tabs, semicolons or commas."""


class TableCheck(SpaceForm):
    """Past results to be looked at before the study is made."""

    value: str = "result"
    table: Annotated[str, Field(max_length=1_000_000)]


class EditStudy(Strict):
    """Facts about a study to be changed."""

    name: Name | None = None
    notes: Text | None = None
    value: Name | None = None
    unit: Unit | None = None
    batch: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] | None = None


class Ask(Strict):
    """How many suggestions."""

    n: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 1


class Result(Strict):
    """What came of an experiment: a value, or that it failed."""

    value: MaybeNumber = None
    failed: bool = False
    cost: MaybeNumber = None
    violation: MaybeNumber = None
    note: Text = ""


class Tell(Result):
    """The result of a trial; `config` if other values were used than those suggested."""

    config: Config | None = None


class OwnTrial(Strict):
    """A config of one's own, with its result if it has one."""

    config: Config
    result: Result | None = None


class Table(Strict):
    """Results as a table with a header."""

    table: Annotated[str, Field(min_length=1, max_length=1_000_000)]


class Predict(Strict):
    """Configs to predict."""

    configs: Annotated[list[Config], Field(min_length=1, max_length=MOST_ROWS)]
    level: Annotated[float, Field(gt=0, lt=1)] = 0.9
    observation_noise: bool = False


class TrialView(BaseModel):
    """A trial: a config, and what came of it."""

    number: int
    config: Config
    status: Literal["pending", "done", "failed", "withdrawn"]
    value: float | None
    cost: float | None
    violation: float | None
    note: str
    predicted: Prediction | None  # when it was suggested


class StudySummary(BaseModel):
    """A study in the list."""

    id: str
    name: str
    version: str
    goal: Literal["minimize", "maximize"]
    value: str
    unit: str
    owned: bool  # whether it can be changed here
    in_use: bool  # whether a program is working on it
    results: int
    failed: int
    pending: int
    best: float | None
    modified: float


class StudyView(StudySummary):
    """A study with its trials."""

    notes: str
    noisy: bool
    batch: int
    units: dict[str, str]
    space: dict[str, Any]
    trials: list[TrialView]
    undo: str | None


class Asked(BaseModel):
    """New suggestions, and the version of the study with them."""

    version: str
    trials: list[TrialView]


class Changed(BaseModel):
    """What was done, and the version of the study after it."""

    version: str
    message: str
    trial: TrialView | None = None


class Predicted(BaseModel):
    """What is expected of a config."""

    config: Config
    mean: float
    median: float
    lower: float
    upper: float
    level: float


class ErrorView(BaseModel):
    """Why a request was not met."""

    error: str
    problems: list[Problem] = []
