"""The pages: the list, the form, a study, its report, and its results in files."""

import importlib.resources
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.templating import Jinja2Templates
from markupsafe import Markup
from starlette.responses import Response

from amortes.lab import figures, learned, words
from amortes.lab.api import AFolder, AStudy
from amortes.lab.assets import ADDRESS
from amortes.lab.study import Snapshot, Study
from amortes.optimiser.choices import Choices
from amortes.optimiser.numeric import Int
from amortes.optimiser.table import as_csv

router = APIRouter(include_in_schema=False)
templates = Jinja2Templates(
    directory=Path(str(importlib.resources.files("amortes.lab"))) / "templates"
)
templates.env.trim_blocks = templates.env.lstrip_blocks = True
templates.env.filters |= {
    "number": words.number_text,
    "day": lambda seconds: datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%d %b %Y"),
    "minute": lambda s: datetime.fromtimestamp(s, UTC).astimezone().strftime("%d %b %Y, %H:%M"),
}
templates.env.globals |= {
    "static": ADDRESS,
    "interval": words.interval_text,
    "range_text": words.range_text,
    "condition_text": words.condition_text,
    "constraint_text": words.constraint_text,
    "is_choice": lambda parameter: isinstance(parameter, Choices),
    "is_int": lambda parameter: isinstance(parameter, Int),
}


@router.get("/")
def index(request: Request, folder: AFolder) -> Response:
    """All studies."""
    return _page(request, "index.html", entries=folder.entries(), folder=folder.path.resolve())


@router.get("/new")
def new(request: Request, folder: AFolder, like: str | None = None) -> Response:
    """The form of a new study, empty or filled in like another one."""
    filled = None if like is None else _form_like(folder.study(like).read())
    return _page(request, "new.html", filled=filled)


@router.get("/studies/{study}")
def show(request: Request, study: AStudy) -> Response:
    """A study."""
    return _page(request, "study.html", **_study(study))


@router.get("/studies/{study}/board")
def board(request: Request, study: AStudy) -> Response:
    """The part of a study's page that changes with it."""
    return _page(request, "board.html", **_study(study))


@router.get("/studies/{study}/report")
def report(request: Request, study: AStudy) -> Response:
    """Everything about a study on a page to be printed."""
    context = _study(study)
    if context["snapshot"].having("done"):
        overview = context["overview"] = study.ask_model("overview", learned.overview)
        context["figure"] = _svg(figures.drawn(study, "svg"))
        pairs = learned.pairs(context["snapshot"].space, overview)
        context["contours"] = [(x, y, _svg(figures.drawn(study, "svg", x, y))) for x, y in pairs]
    return _page(request, "report.html", **context, now=datetime.now(UTC).timestamp())


@router.get("/studies/{study}/results.csv")
def results_csv(study: AStudy) -> Response:
    """The trials as a table."""
    return _file(as_csv(study.read().trials), "text/csv; charset=utf-8", f"{study.id}.csv")


@router.get("/studies/{study}/run.json")
def run_json(study: AStudy) -> Response:
    """The run's own file."""
    name = study.id if study.id.endswith(".json") else f"{study.id}.json"
    return _file(study.path.read_bytes(), "application/json", name)


@router.get("/studies/{study}/figure.{kind}")
def figure(study: AStudy, kind: Literal["png", "svg", "pdf"]) -> Response:
    """The figure of a run: its results, and the model along each parameter."""
    media = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}[kind]
    return _file(figures.drawn(study, kind), media, f"{study.id}.{kind}")


def error_page(request: Request, status: int, error: str) -> Response:
    """An error for people."""
    return templates.TemplateResponse(request, "error.html", {"error": error}, status_code=status)


def _page(request: Request, template: str, **context: Any) -> Response:
    return templates.TemplateResponse(request, template, context)


def _study(study: Study) -> dict[str, Any]:
    snapshot = study.read()
    in_use = study.in_use
    return {
        "snapshot": snapshot,
        "about": snapshot.about,
        "in_use": in_use,
        "editable": snapshot.owned and not in_use,
        "best": snapshot.best,
        "pending": snapshot.having("pending"),
        "told": sorted(snapshot.having("done", "failed"), key=lambda trial: -trial.number),
    }


def _form_like(snapshot: Snapshot) -> dict[str, Any]:
    """What was put into the form, its results as a table."""
    space = snapshot.space.to_dict()
    told = snapshot.having("done", "failed")
    return {
        **snapshot.about.model_dump(include={"value", "unit", "notes", "noisy", "batch"}),
        "name": f"{snapshot.about.name} (copy)",
        "goal": snapshot.goal,
        "parameters": [
            {
                "name": name,
                "unit": snapshot.about.units.get(name, ""),
                "when": _when(space.get("conditions", {}).get(name)),
                **entry,
            }
            for name, entry in space["parameters"].items()
        ],
        "constraints": words.constraint_text(snapshot.space),
        "table": as_csv(told) if told else "",
    }


def _when(condition: dict[str, Any] | None) -> str:
    """A condition as it is typed into the form."""
    if condition is None:
        return ""
    return f"{condition['parent']} = {', '.join(map(str, condition['values']))}"


def _svg(content: bytes) -> Markup:
    """The drawing of an SVG file, as a part of a page."""
    return Markup("<svg") + Markup(content.decode().partition("<svg")[2])


def _file(content: str | bytes, media: str, name: str) -> Response:
    plain = name.encode("ascii", "replace").decode().replace('"', "")
    headers = {"content-disposition": f'attachment; filename="{plain}"'}
    return Response(content, media_type=media, headers=headers)
