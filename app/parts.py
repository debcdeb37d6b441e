"""Small components that the views share."""

from collections.abc import Sequence
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from c3prof.renderers.figures import Figure
from c3prof.table import Report

_BUTTONS = {
    "displaylogo": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "svg"},
}

MISSING = {
    "overlap": "no activity on a device and no communication was recorded",
    "overlap_by_step": "the trace has no ProfilerStep annotations",
    "exposed": "no communication is exposed, or none was recorded",
    "slowdown": "no kernel ran both alone and beside another stream",
    "interference": "no kernel ran both alone and beside another stream",
    "footprint": "no compute kernel with a launch grid ran beside communication",
    "c3": "computation and communication never ran at the same time",
    "collectives": "no collective was recorded",
    "stragglers": "no arrivals could be compared: there is one rank only, no matched collective but the first, or every skew is below the clock bound",
    "bandwidth_fit": "too few sizes of one kind were transferred to fit a line, or transfer times are not known",
    "waits_by_rank": "no collective was matched between ranks",
    "kernels": "no kernel was recorded",
    "clocks": "there is one rank only",
}
"""Why a table may be empty, for people."""


def head(title: str, about: str = "") -> Component:
    """The heading of a view."""
    return html.Header([html.H1(title), html.P(about, className="muted") if about else None], className="view-head")


def card(title: str, *children: Any, about: str = "", wide: bool = False) -> Component:
    """A box with a heading and a sentence on how to read it."""
    parts = [html.H2(title), html.P(about, className="muted") if about else None, *children]
    return html.Section(parts, className="card wide" if wide else "card")


def graph(figure: Figure | None, why: str, name: str = "", label: str = "") -> Component:
    """The figure, or why there is none."""
    if figure is None:
        return missing(why)
    height = figure["layout"]["height"]
    settings: dict[str, Any] = {"id": name} if name else {}
    made = dcc.Graph(figure=figure, config=_BUTTONS, responsive=True, style={"height": f"{height}px"}, **settings)
    return html.Div(made, role="img", **{"aria-label": label}) if label else html.Div(made)


def missing(why: str) -> Component:
    """What is not there, and the reason."""
    return html.P(["Nothing to show: ", why, "."], className="missing")


def why_empty(report: Report, name: str) -> str:
    """Why a table has no rows: it was not asked for, or what the trace lacks."""
    if name not in report:
        return f"the table {name} was not computed for this report"
    return MISSING.get(name, "the table has no rows")


def stat(label: str, value: str, about: str = "") -> Component:
    """One number with its name and what it means."""
    return html.Div(
        [html.Div(value, className="stat-value"), html.Div(label, className="stat-label"), html.Div(about, className="muted")],
        className="stat",
    )


def warnings(report: Report, codes: Sequence[str] = ()) -> Component | None:
    """Warnings that bear on numbers, or only those of some codes."""
    chosen = [one for one in report.warnings if (one.code in codes if codes else one.bears_on_numbers)]
    if not chosen:
        return None
    items = [html.Li([html.B(f"{one.path}: " if one.path else ""), one.message]) for one in chosen[:20]]
    more = html.P(f"and {len(chosen) - 20} more", className="muted") if len(chosen) > 20 else None
    count = f"{len(chosen)} remark{'s' if len(chosen) != 1 else ''} on what these numbers rest on"
    return html.Details([html.Summary(count), html.Ul(items), more], className="warnings", open=len(chosen) <= 3)
