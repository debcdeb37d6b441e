"""The view that answers first: the headline, what a step is made of, the scorecard, the findings that cost most."""

from typing import Any

import numpy as np
from dash import dcc, html
from dash.development.base_component import Component

from c3prof.app.lanes import CLASSES
from c3prof.app.parts import card, graph, missing, stat, warnings, why_empty
from c3prof.app.query import Query, link
from c3prof.app.run import Run
from c3prof.app.timeline import Timeline
from c3prof.renderers.cells import counts
from c3prof.renderers.figures import exposed_by_cause, kernel_times, rows_of, run_bar, step_bars
from c3prof.renderers.figures_slowdown import scorecard_bars
from c3prof.renderers.findings import Finding, findings, headline_text, key_numbers, readings, scorecard_numbers
from c3prof.table import Report
from c3prof.units import text_of_time


def page(run: Run, _: Query) -> Component:
    """The overview of a loaded run."""
    report = _report(run)
    sentence, more = headline_text(report)
    return html.Div(
        [
            html.Header([html.H1(sentence or "No headline: this report has no overlap table", className="headline"), *map(html.P, more)]),
            html.Div(stats(report), className="stats"),
            card("What costs most", _findings(report, run.timeline)),
            scorecard(report),
            card("Where the step goes", graph(step_bars(report), why_empty(report, "overlap"), label="Parts of each step"), wide=True),
            card("All ranks' time", graph(run_bar(report), why_empty(report, "overlap"), label="Parts of the run in percent"), wide=True),
            card(
                "Why communication is exposed",
                graph(exposed_by_cause(report), why_empty(report, "exposed"), label="Exposed time by cause"),
                wide=True,
            ),
            card(
                "Kernels that take most time", graph(kernel_times(report), why_empty(report, "kernels"), label="Time by kernel"), wide=True
            ),
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
    tiles = [stat(*number) for number in key_numbers(report)]
    return tiles or [missing(why_empty(report, "overlap"))]


def scorecard(report: Report) -> Component:
    """How much of the ideal speed-up of running both at once is realized."""
    about = "How much faster the regions are in which both run, against one after the other."
    if not len(rows_of(report, "c3")):
        return card("Concurrency scorecard", missing(why_empty(report, "c3")), about=about)
    tiles, told = [stat(*number) for number in scorecard_numbers(report)], readings(report)
    if not tiles:
        return card("Concurrency scorecard", *(html.P(text, className="missing") for text in told[:1]), about=about)
    sentences = [html.P(text, className="muted") for text in told]
    figure = graph(scorecard_bars(report), "serial and ideal times are not known")
    return card("Concurrency scorecard", html.Div(tiles, className="stats small"), *sentences, figure, about=about)


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
    """What was read, dropped and linked, over all ranks."""
    told = counts(report.coverage)
    if not told:
        return None
    rows = [html.Tr([html.Th(words, scope="row"), html.Td(number)]) for words, number in told]
    return html.Details([html.Summary("What the numbers rest on"), html.Table(html.Tbody(rows), className="plain")], className="warnings")
