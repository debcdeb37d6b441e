"""The view of slowdown: which kernels lose time to what runs beside them, and the samples behind each number."""

from collections.abc import Mapping
from typing import Any

from dash import html
from dash.development.base_component import Component

from c3prof.app import ids
from c3prof.app.grid import grid
from c3prof.app.parts import card, graph, head, missing, warnings, why_empty
from c3prof.app.query import Query
from c3prof.app.run import Run
from c3prof.kernels import COLLECTIVES
from c3prof.renderers.figures import numbers, rows_of
from c3prof.renderers.figures_slowdown import interference_map, slowdown_ranking, slowdown_samples, waves

_FIRST = ("rank", "kernel", "co_runner", "slowdown", "slowdown_low", "slowdown_high", "lost_ns", "interference", "n_clean", "n_overlapped")
_ABOUT = (
    "Time of a kernel beside a co-runner over its time alone, per shared time: 1.0 is none. Each interval is 95 % by itself, unadjusted."
)


def page(run: Run, query: Query) -> Component:
    """Ranking, grid with samples, interference, footprint."""
    report = run.report
    if report is None:
        raise ValueError("the run is not loaded")
    table = report.get("slowdown")
    if table is None or not len(table):
        body: list[Component | None] = [missing(why_empty(report, "slowdown"))]
    else:
        place = _place(table.frame, query.get("signature"))
        chosen = table.frame.iloc[place].to_dict()
        body = [
            card("What loses most", graph(slowdown_ranking(report), "no row has a number; the notes below say why"), wide=True),
            card(
                "Signatures",
                grid(table, ids.SLOWDOWN_GRID, selected=place, first=_FIRST),
                about="Choose a row to see its samples. Help for a column is on its heading.",
                wide=True,
            ),
            card(
                "Samples",
                html.Div(samples(run, {str(k): v for k, v in chosen.items()}), id=ids.SLOWDOWN_SAMPLES, **{"aria-live": "polite"}),
                wide=True,
            ),
        ]
    body += [
        card(
            "Interference",
            graph(interference_map(report), why_empty(report, "interference"), label="Slowdown by class and co-runner"),
            wide=True,
        ),
        _footprint(run),
        warnings(report, ("unattributable-fused", "suspected-comm")),
    ]
    return html.Div([head("Slowdown", _ABOUT), *body], className="page grid-page")


def _place(frame: Any, signature: str) -> int:
    """The row of a signature; else the one that lost most."""
    if signature:
        places = (frame["signature"].astype(str) == signature).to_numpy().nonzero()[0]
        if len(places):
            return int(places[0])
    lost = numbers(frame, "lost_ns").where(numbers(frame, "slowdown").notna())
    return int(lost.fillna(-1).to_numpy().argmax())


def samples(run: Run, row: Mapping[str, Any]) -> Component:
    """The samples of a row of the table as a scatter with the fitted curve, or why there are none."""
    if run.samples is None:
        return missing("the samples of a row need the trace, and only the report is at hand")
    note = html.P(f"Note: {row['note']}", className="muted") if row.get("note") else None
    title = html.P([html.B(str(row.get("kernel"))), f" beside {row.get('co_runner')}, rank {row.get('rank')}"], className="sample-title")
    figure = slowdown_samples(run.samples(row), row)
    why = (
        "transfers of collectives rest on all ranks; they are in the view of collectives"
        if row.get("op") in COLLECTIVES
        else "this row has no samples"
    )
    return html.Div([title, graph(figure, why, label="Duration against overlap fraction"), note])


def _footprint(run: Run) -> Component:
    report = run.report
    if report is None or "footprint" not in report or not len(rows_of(report, "footprint")):
        return card("Footprint", missing(why_empty(report, "footprint") if report else "no report"), wide=True)
    about = "Waves of thread blocks with all SMs, and with those left beside the communication kernel: an upper bound, since blocks can share an SM."
    figure = waves(report)
    parts = [graph(figure, "")] if figure else []
    return card("Footprint", *parts, grid(report["footprint"], "footprint-grid"), about=about, wide=True)
