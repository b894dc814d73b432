"""The pages: the list, the form, a study, its report, and its results and figures in files.

Scripts and styles are kept by browsers: their address has a digest of what they are.
"""

import hashlib
import importlib.resources
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.templating import Jinja2Templates
from markupsafe import Markup
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from amortes.lab import learned, words
from amortes.lab.api import AFolder, AStudy
from amortes.lab.study import Snapshot, Study
from amortes.optimiser import Int, Optimizer
from amortes.optimiser.choices import Choices
from amortes.optimiser.table import as_csv

HERE = Path(str(importlib.resources.files("amortes.lab"))) / "static"


def _digest() -> str:
    found = hashlib.sha256()
    for file in sorted(HERE.rglob("*")):
        if file.is_file():
            found.update(file.relative_to(HERE).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:12]


ADDRESS = f"/static/{_digest()}"


class Assets(StaticFiles):
    """The files at `ADDRESS`; a browser that has one need not ask for it again."""

    def __init__(self) -> None:
        super().__init__(directory=HERE)

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """A file as an answer."""
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "private, max-age=31536000, immutable"
        return response


router = APIRouter(include_in_schema=False)
templates = Jinja2Templates(directory=HERE.with_name("templates"))
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
        context["figure"] = _svg(drawn(study, "svg"))
        pairs = learned.pairs(context["snapshot"].space, overview)
        context["contours"] = [(x, y, _svg(drawn(study, "svg", x, y))) for x, y in pairs]
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
    return _file(drawn(study, kind), media, f"{study.id}.{kind}")


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


def drawn(study: Study, kind: str, *pair: str) -> bytes:
    """The run on one page, or two of its parameters, as a PNG, SVG or PDF file."""
    from amortes.optimiser.plots.picture import label  # Matplotlib takes a while to import

    def draw(optimizer: Optimizer, snapshot: Snapshot) -> bytes:
        about, out = snapshot.about, io.BytesIO()
        picture = optimizer.plot.contour(*pair) if pair else optimizer.plot()
        across = {label(name): _with_unit(name, unit) for name, unit in about.units.items()}
        upwards = across if pair else {"value": _with_unit(about.value, about.unit)}
        for ax in picture.axes:
            x, y = ax.get_xlabel(), ax.get_ylabel()
            ax.set_xlabel(label(across[x], 40) if x in across else x)
            ax.set_ylabel(label(upwards[y], 40) if y in upwards else y)
        picture.savefig(out, format=kind, dpi=150)
        return out.getvalue()

    return study.ask_model(("figure", kind, *pair), draw)


def _with_unit(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name
