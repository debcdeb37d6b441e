"""The view of collectives: the ledger, bandwidth by size, where their time goes, why it is exposed."""

from dash import html
from dash.development.base_component import Component

from c3prof.app.grid import grid
from c3prof.app.parts import card, graph, head, missing, warnings, why_empty
from c3prof.app.query import Query
from c3prof.app.run import Run
from c3prof.renderers.figures import exposed_by_cause
from c3prof.renderers.figures_collectives import busbw_by_size, time_by_kind

_ABOUT = "Each collective of each rank: how big, how fast, how long it waited for peers, how much of it compute hid."


def page(run: Run, _: Query) -> Component:
    """Bandwidth, time by kind and cause, and the ledger."""
    report = run.report
    if report is None:
        raise ValueError("the run is not loaded")
    body: list[Component | None] = [
        card("Bus bandwidth by message size", graph(busbw_by_size(report), "no collective has both a size and a duration"), wide=True),
        card("Waiting and transfer", graph(time_by_kind(report), why_empty(report, "collectives"))),
        card("Exposed by cause", graph(exposed_by_cause(report), why_empty(report, "exposed"))),
    ]
    for name, title in (
        ("collectives_by_kind", "By kind"),
        ("collectives", "Ledger"),
        ("bandwidth_fit", "Fits"),
        ("bucket_plans", "Bucket plans"),
    ):
        table = report.get(name)
        if table is not None and len(table):
            body.append(card(title, grid(table, f"{name}-grid"), wide=True))
        elif name in ("collectives", "bandwidth_fit"):
            body.append(card(title, missing(why_empty(report, name)), wide=True))
    return html.Div(
        [head("Collectives", _ABOUT), *body, warnings(report, ("contradicting-ends", "missing-ranks"))], className="page grid-page"
    )
