"""Wires components to plain functions; what they compute stands in the views."""

from functools import partial
from typing import Any

from dash import Dash, Input, Output, State, ctx, no_update

from c3prof.app import collectives, compare, ids, layout, overview, ranks, slowdown, tables, timeline_page
from c3prof.app.query import Query
from c3prof.app.run import Run

SHOWN = "shown"
"""Class of the page once it is no longer about loading: polling leaves it alone from then on."""

PAGES = {
    "/": overview.page,
    "/timeline": timeline_page.page,
    "/slowdown": slowdown.page,
    "/collectives": collectives.page,
    "/ranks": ranks.page,
    "/tables": tables.page,
}


def page(run: Run, other: Run | None, path: str, search: str) -> Any:
    """The view at a path; loading or the error while there is no report."""
    if not is_ready(run, other, path):
        return layout.loading(other if other is not None and run.report is not None else run)
    query = Query.of(search)
    if path == "/compare":
        return compare.page(run, other, query)
    return PAGES.get(path, overview.page)(run, query)


def is_ready(run: Run, other: Run | None, path: str) -> bool:
    """Whether all is there that a view needs: the timeline needs no report, the comparison two."""
    if path == "/timeline":
        return run.timeline is not None
    return run.report is not None and (path != "/compare" or other is None or other.report is not None)


def register(app: Dash, run: Run, other: Run | None) -> None:
    """Adds every callback to the app."""

    def navigation(path: str) -> Any:
        return layout.navigation(path, compare=other is not None)

    def shown(path: str, search: str, _: int, was: str) -> Any:
        done = run.done and (other is None or other.done)
        if ctx.triggered_id == ids.POLL and was == SHOWN:
            return no_update, no_update, done
        return page(run, other, path or "/", search or ""), SHOWN if is_ready(run, other, path) else "", done

    def samples(rows: list[dict[str, Any]] | None) -> Any:
        return slowdown.samples(run, rows[0]) if rows else no_update

    def table(name: str, path: str) -> Any:
        return Query({"table": name}).text if path == "/tables" else no_update

    place = [Output(ids.PAGE, "children"), Output(ids.PAGE, "className"), Output(ids.POLL, "disabled")]
    address = [Input(ids.LOCATION, "pathname"), Input(ids.LOCATION, "search"), Input(ids.POLL, "n_intervals")]
    later = {"prevent_initial_call": True}
    app.callback(Output(ids.NAVIGATION, "children"), address[0])(navigation)
    app.callback(place, address, State(ids.PAGE, "className"))(shown)
    app.callback(Output(ids.SLOWDOWN_SAMPLES, "children"), Input(ids.SLOWDOWN_GRID, "selectedRows"), **later)(samples)
    app.callback(Output(ids.RANKS_MAP, "figure"), Input(ids.RANKS_MEASURE, "value"), **later)(partial(ranks.figure, run))
    app.callback(Output(ids.LOCATION, "search"), Input(ids.TABLE_CHOICE, "value"), State(ids.LOCATION, "pathname"), **later)(table)
