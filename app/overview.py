"""The view that answers first: the headline, what a step is made of, the scorecard, the findings that cost most."""

import math
from typing import Any

import numpy as np
from dash import dcc, html
from dash.development.base_component import Component

from c3prof.app.lanes import CLASSES
from c3prof.app.parts import card, graph, missing, stat, warnings, why_empty
from c3prof.app.query import Query, link
from c3prof.app.run import Run
from c3prof.app.timeline import Timeline
from c3prof.renderers.figures import exposed_by_cause, kernel_times, numbers, rows_of, run_bar, step_bars
from c3prof.renderers.figures_slowdown import run_rows, scorecard_bars
from c3prof.renderers.findings import Finding, findings, headline_text, total_of
from c3prof.table import Report
from c3prof.units import text_of_ratio, text_of_time


def page(run: Run, _: Query) -> Component:
    """The overview of a loaded run."""
    report = _report(run)
    sentence, more = headline_text(report)
    return html.Div(
        [
            html.Header([html.H1(sentence or "No headline: this report has no overlap table", className="headline"), *map(html.P, more)]),
            html.Div(stats(report), className="stats"),
            card("What costs most", _findings(report, run.timeline), wide=True),
            card("Where the step goes", graph(step_bars(report), why_empty(report, "overlap"), label="Parts of each step"), wide=True),
            card("All ranks' time", graph(run_bar(report), why_empty(report, "overlap"), label="Parts of the run in percent"), wide=True),
            scorecard(report),
            card("Why communication is exposed", graph(exposed_by_cause(report), why_empty(report, "exposed"), label="Exposed time by cause")),
            card("Kernels that take most time", graph(kernel_times(report), why_empty(report, "kernels"), label="Time by kernel"), wide=True),
            warnings(report),
            coverage(report),
        ],
        className="page grid-page",
    )


def _report(run: Run) -> Report:
    if run.report is None:
        raise ValueError("the run is not loaded")
    return run.report


def stats(report: Report) -> list[Component]:
    """The few numbers that everybody asks for."""
    overlap = rows_of(report, "overlap")
    if not len(overlap):
        return [missing(why_empty(report, "overlap"))]
    span, comm = total_of(overlap, "span_ns"), total_of(overlap, "comm_ns")
    hidden, exposed, idle = (total_of(overlap, f"{name}_ns") for name in ("hidden", "exposed", "idle"))
    ranks = overlap["rank"].nunique()
    return [
        stat("exposed communication", text_of_ratio(exposed / span if span else math.nan), f"{text_of_time(exposed)} over {ranks:,} ranks"),
        stat("of communication is hidden", text_of_ratio(hidden / comm if comm else math.nan), f"{text_of_time(hidden)} of {text_of_time(comm)}"),
        stat("idle", text_of_ratio(idle / span if span else math.nan), text_of_time(idle)),
        stat("recorded", text_of_time(span / max(len(overlap), 1)), f"a rank, mean of {ranks:,}"),
    ]


def scorecard(report: Report) -> Component:
    """How much of the ideal speed-up of running both at once is realized."""
    frame = run_rows(rows_of(report, "c3"))
    about = "How much faster the regions are in which both run, against one after the other."
    if not len(frame):
        return card("Concurrency scorecard", missing(why_empty(report, "c3")), about=about)
    names = [("real_speedup", "realized speed-up", "×"), ("ideal_speedup", "ideal speed-up", "×")]
    names += [("realized_by_time", "realized, by time", "%"), ("realized_by_speedup", "realized, by speed-up", "%")]
    row = frame.iloc[0].to_dict() if len(frame) == 1 else {name: numbers(frame, name).median() for name, _, _ in names if name in frame}
    tiles = [stat(label, _value(row.get(name), unit), _interval(row, name, unit)) for name, label, unit in names if name in frame]
    notes = sorted({str(note) for note in frame["note"].dropna() if str(note)}) if "note" in frame else []
    many = [html.P(f"Median of {len(frame):,} ranks.", className="muted")] if len(frame) > 1 else []
    told = [html.P(note, className="muted") for note in notes[:3]]
    figure = graph(scorecard_bars(report), "serial and ideal times are not known: too few activities have a clean baseline")
    return card("Concurrency scorecard", html.Div(tiles, className="stats small"), figure, *many, *told, about=about)


def _value(value: Any, unit: str) -> str:
    number = math.nan if value is None else float(value)
    if math.isnan(number):
        return "–"
    return f"{100 * number:.0f} %" if unit == "%" else f"{number:.2f}×"


def _interval(row: dict[Any, Any], name: str, unit: str) -> str:
    low, high = _value(row.get(f"{name}_low"), unit), _value(row.get(f"{name}_high"), unit)
    return f"{low} to {high}" if "–" not in (low, high) else ""


def _findings(report: Report, timeline: Timeline | None) -> Component:
    found = findings(report)
    if not found:
        return missing("nothing in this report costs time")
    items = [
        html.Li(dcc.Link([html.Span(text_of_time(one.cost_ns), className="cost"), html.Span(one.sentence)], href=_href(one, timeline)))
        for one in found
    ]
    return html.Ol(items, className="findings")


def _href(finding: Finding, timeline: Timeline | None) -> str:
    """Where a finding is seen; an exposed one leads to the longest exposed interval."""
    if finding.view == "/timeline" and timeline is not None:
        window = longest_exposed(timeline)
        return link("/timeline", **window) if window else "/timeline"
    return link(finding.view, **dict(finding.query))


def longest_exposed(timeline: Timeline) -> dict[str, Any]:
    """The window and rank of the longest exposed interval, as the timeline's settings; empty if nothing is exposed."""
    exposed, best = CLASSES.index("exposed"), (0, 0, 0, 0)
    for lane in timeline.lanes.values():
        if lane.label != "communication":
            continue
        spans = lane.pyramid.spans
        length = np.where(spans.cls == exposed, spans.end - spans.start, 0)
        place = int(length.argmax()) if len(length) else 0
        if len(length) and int(length[place]) > best[0]:
            best = (int(length[place]), int(spans.start[place]), int(spans.end[place]), lane.rank)
    if not best[0]:
        return {}
    pad = max(best[0] // 2, 1_000)
    return {"t0": best[1] - timeline.begin - pad, "t1": best[2] - timeline.begin + pad, "ranks": best[3]}


def coverage(report: Report) -> Component | None:
    """What was read, dropped and linked, summed over ranks."""
    counts: dict[str, int] = {}
    for of_rank in report.coverage.values():
        if isinstance(of_rank, dict):
            for name, value in of_rank.items():
                counts[name] = counts.get(name, 0) + int(value)
    if not counts:
        return None
    rows = [html.Tr([html.Th(name.replace("_", " "), scope="row"), html.Td(f"{value:,}")]) for name, value in counts.items()]
    return html.Details([html.Summary("What the numbers rest on"), html.Table(html.Tbody(rows), className="plain")], className="warnings")
