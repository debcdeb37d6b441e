"""What the timeline asks for, as JSON: lanes, windows, one span, the next hit of a search. Thin: arguments in, plain functions out."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from flask import Flask, Response, request

from c3prof.app.run import Run
from c3prof.app.spans import details
from c3prof.app.timeline import Timeline
from c3prof.renderers.palette import CLASSES

Answer = Callable[[Run, Timeline, Mapping[str, str]], Any]


def add_api(server: Flask, run: Run) -> None:
    """Adds /api/lanes, /api/view, /api/span, /api/search and /api/state."""
    for name, answer in _ANSWERS.items():
        server.add_url_rule(f"/api/{name}", f"api-{name}", _endpoint(run, answer), methods=["GET", "POST"])
    server.add_url_rule("/api/state", "api-state", lambda: _json(state(run)))


def state(run: Run) -> dict[str, Any]:
    """What is being done and how far it is; error for the user, "" if none."""
    return {"name": run.name, "doing": run.doing, "share": run.share, "error": run.error, "ready": run.timeline is not None, "done": run.done}


def _endpoint(run: Run, answer: Answer) -> Callable[[], Response]:
    def respond() -> Response:
        if run.timeline is None:
            return _json({"error": run.error or f"still {run.doing}"}, 503)
        given = request.get_json(silent=True) if request.method == "POST" else request.args
        try:
            return _json(answer(run, run.timeline, given if isinstance(given, Mapping) else {}))
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            return _json({"error": f"cannot be answered: {error}"}, 400)

    return respond


def _lanes(_: Run, timeline: Timeline, __: Mapping[str, Any]) -> Any:
    return timeline.structure() | {"colours": CLASSES}


def _view(_: Run, timeline: Timeline, given: Mapping[str, Any]) -> Any:
    keys = [str(key) for key in given["lanes"]]
    return timeline.view(keys, float(given["begin"]), float(given["end"]), int(given.get("width", 1_000)))


def _span(run: Run, timeline: Timeline, given: Mapping[str, Any]) -> Any:
    return details(timeline, run.report, str(given["lane"]), int(given["row"]))


def _search(_: Run, timeline: Timeline, given: Mapping[str, Any]) -> Any:
    keys = [str(key) for key in given["lanes"]]
    return timeline.hits(str(given["text"])[:200], keys, float(given.get("at", 0)), backwards=bool(given.get("backwards")))


_ANSWERS: dict[str, Answer] = {"lanes": _lanes, "view": _view, "span": _span, "search": _search}


def _json(value: Any, status: int = 200) -> Response:
    response = Response(msgspec.json.encode(value), status, mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response
