"""What the timeline asks for, as JSON: lanes, windows, one span, the next hit of a search. Thin: arguments in, plain functions out."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
import numpy as np
from flask import Flask, Response, request

from c3prof.app.run import Run
from c3prof.app.spans import details
from c3prof.app.timeline import Timeline
from c3prof.renderers import csv
from c3prof.renderers.palette import CLASSES
from c3prof.renderers.perfetto import chosen_ranks, perfetto_bytes

_MOST_SPANS = 500_000
"""A larger export is made by the command, which does not keep it in memory."""

Answer = Callable[[Run, Timeline, Mapping[str, str]], Any]


def add_api(server: Flask, run: Run) -> None:
    """Adds /api/lanes, /api/view, /api/span, /api/search, /api/state, and the downloads /api/csv and /api/perfetto."""
    for name, answer in _ANSWERS.items():
        server.add_url_rule(f"/api/{name}", f"api-{name}", _endpoint(run, answer), methods=["GET", "POST"])
    server.add_url_rule("/api/state", "api-state", lambda: _json(state(run)))
    server.add_url_rule("/api/csv", "api-csv", lambda: _csv(run, request.args.get("table", "")))
    server.add_url_rule("/api/perfetto", "api-perfetto", lambda: _perfetto(run, request.args))


def state(run: Run) -> dict[str, Any]:
    """What is being done and how far it is; error for the user, "" if none."""
    return {
        "name": run.name,
        "doing": run.doing,
        "share": run.share,
        "error": run.error,
        "ready": run.timeline is not None,
        "done": run.done,
    }


def _endpoint(run: Run, answer: Answer) -> Callable[[], Response]:
    def respond() -> Response:
        if run.timeline is None:
            return _json({"error": run.error or f"still {run.doing}"}, 503)
        try:
            given = request.get_json(silent=True) if request.method == "POST" else request.args
            return _json(answer(run, run.timeline, given if isinstance(given, Mapping) else {}))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
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


def _csv(run: Run, name: str) -> Response:
    """A table of the report as CSV. The name is looked up among the tables: it is no path."""
    table = run.report.get(name) if run.report else None
    if table is None:
        return _json({"error": f"there is no table {name[:80]}"}, 404)
    return _download(csv.text(table).encode(), f"{table.schema.name}.csv", "text/csv")


def _perfetto(run: Run, given: Mapping[str, str]) -> Response:
    """The window [begin, end) ns after the start, for Perfetto; only some ranks if they are given as 0-3,8."""
    if run.trace is None or run.timeline is None:
        return _json({"error": run.error or f"still {run.doing}"}, 503)
    try:
        begin, end = (run.timeline.begin + int(float(given[name])) for name in ("begin", "end"))
        ranks = chosen_ranks(given.get("ranks", ""), run.trace.rank_numbers)
    except (ValueError, KeyError, OverflowError) as error:
        return _json({"error": f"begin, end and ranks are needed as numbers: {error}"}, 400)
    if timeline_spans(run.timeline, begin, end, ranks) > _MOST_SPANS:
        message = (
            f"this window holds more than {_MOST_SPANS:,} spans: zoom in, choose fewer ranks, or use c3prof export PATH --perfetto OUT"
        )
        return _json({"error": message}, 413)
    return _download(perfetto_bytes(run.trace, run.report, window=(begin, end), ranks=ranks), "window.json.gz", "application/gzip")


def timeline_spans(timeline: Timeline, begin: int, end: int, ranks: Collection[int]) -> int:
    """About how many spans of some ranks lie in a window."""
    starts = (lane.pyramid.spans.start for lane in timeline.lanes.values() if lane.rank in ranks)
    return sum(int(np.searchsorted(start, end) - np.searchsorted(start, begin)) for start in starts)


def _download(body: bytes, name: str, mimetype: str) -> Response:
    response = Response(body, mimetype=mimetype)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _json(value: Any, status: int = 200) -> Response:
    response = Response(msgspec.json.encode(value), status, mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response
