"""The view of the timeline: a place that assets/timeline.js fills from /api."""

from dash import html
from dash.development.base_component import Component

from c3prof.app import ids
from c3prof.app.query import Query
from c3prof.app.run import Run


def page(_: Run, __: Query) -> Component:
    """The element for the timeline. Its state stands in the address, which the script reads and writes."""
    return html.Div(html.P("The timeline needs JavaScript.", className="muted"), id=ids.TIMELINE, className="timeline")
