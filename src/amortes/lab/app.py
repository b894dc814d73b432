"""The application: API, pages and files behind the guard, and errors as people can read them."""

from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from amortes import __version__
from amortes.errors import AmortesError
from amortes.lab import actions, api, pages
from amortes.lab.errors import FormError, LabError
from amortes.lab.folder import Folder
from amortes.lab.form import further_mistakes
from amortes.lab.guard import Guard
from amortes.lab.pages import ADDRESS, Assets


def create_app(folder: Path, *, token: str, host: str = "127.0.0.1") -> FastAPI:
    """The lab of a folder, for those who have the token."""
    app = FastAPI(
        title="amortes lab",
        version=__version__,
        description="Experiments by Bayesian optimisation: ask, tell, recommend, predict.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
    )
    app.state.folder = Folder(folder)
    app.include_router(api.router)
    app.include_router(actions.router)
    app.include_router(pages.router)
    app.mount(ADDRESS, Assets(), name="static")
    app.add_middleware(Guard, token=token, names=[host])
    app.add_exception_handler(AmortesError, _explain)
    app.add_exception_handler(RequestValidationError, _explain_request)
    app.add_exception_handler(HTTPException, _explain_http)
    return app


def answer(request: Request, status: int, error: str, problems: list[dict[str, str]]) -> Response:
    """An error as JSON or, for people, as a page."""
    if request.url.path.startswith("/api"):
        return JSONResponse({"error": error, "problems": problems}, status)
    return pages.error_page(request, status, error)


def _explain(request: Request, error: Exception) -> Response:
    problems = [vars(problem) for problem in error.problems] if isinstance(error, FormError) else []
    status = error.status if isinstance(error, LabError) else 422
    return answer(request, status, str(error), problems)


def _explain_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = [
        {"at": _place(problem["loc"]), "message": _sentence(problem)} for problem in error.errors()
    ]
    known = {problem["at"] for problem in problems}
    problems += [vars(p) for p in further_mistakes(error.body) if p.at not in known]
    return answer(request, 422, " ".join(p["message"] for p in problems), problems)


def _explain_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = "There is no such page." if error.status_code == 404 else str(error.detail)
    refused = answer(request, error.status_code, text, [])
    refused.headers.update(error.headers or {})
    return refused


def _place(loc: Any) -> str:
    """The field, without where it came from and without the kinds of parameters."""
    kinds = ("float", "int", "categorical", "ordinal", "fixed")
    parts = [part for part in loc[1:] if part not in kinds]
    return ".".join(map(str, parts))


def _sentence(problem: Any) -> str:
    """What is wrong with a field, in plain words."""
    kind, context = problem["type"], problem.get("ctx", {})
    given = str(problem.get("input"))[:60]
    texts = {
        "missing": "This is missing.",
        "float_parsing": f"“{given}” is not a number.",
        "float_type": "A number is missing.",
        "int_parsing": f"“{given}” is not a whole number.",
        "int_from_float": f"{given} is not a whole number.",
        "int_type": "A whole number is missing.",
        "finite_number": "The number must be finite.",
        "string_too_short": "This is missing.",
        "string_too_long": f"At most {context.get('max_length')} characters.",
        "too_short": "Give at least one.",
        "too_long": f"At most {context.get('max_length')} are possible.",
        "greater_than_equal": f"Must be at least {context.get('ge')}.",
        "less_than_equal": f"Must be at most {context.get('le')}.",
        "extra_forbidden": f"There is no field {_place(problem['loc'])}.",
        "json_invalid": "The request is not valid JSON.",
    }
    return texts.get(kind, f"{problem['msg']}.")
