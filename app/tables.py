"""The view of all tables: whatever an analysis gives is here without a line of code for it."""

from dash import dcc, html
from dash.development.base_component import Component

from c3prof.app import ids
from c3prof.app.grid import grid
from c3prof.app.parts import card, head, missing, why_empty
from c3prof.app.query import Query
from c3prof.app.run import Run


def page(run: Run, query: Query) -> Component:
    """One table of the report, with a choice of all."""
    report = run.report
    if report is None:
        raise ValueError("the run is not loaded")
    if not len(report):
        return html.Div([head("Tables"), missing("this report has no tables")], className="page")
    name = query.get("table") if query.get("table") in report else next(iter(report))
    table = report[name]
    options = [{"label": f"{key} ({len(report[key]):,})", "value": key} for key in report]
    choice = dcc.Dropdown(options, name, id=ids.TABLE_CHOICE, clearable=False)
    content = grid(table, ids.TABLE_GRID, height=620) if len(table) else missing(why_empty(report, name))
    columns = [html.Tr([html.Td(c.name), html.Td(c.unit), html.Td(c.doc)]) for c in table.schema.columns]
    header = html.Thead(html.Tr([html.Th(word, scope="col") for word in ("column", "unit", "what it is")]))
    about = html.Details([html.Summary("What the columns are"), html.Table([header, html.Tbody(columns)], className="plain")])
    label = html.Label("Table", htmlFor=ids.TABLE_CHOICE, className="muted")
    return html.Div([head("Tables"), label, choice, card(table.schema.title, content, about, wide=True)], className="page")
