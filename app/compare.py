"""The view of two runs: what changed per step, class, kernel and collective, with intervals."""

from dash import html
from dash.development.base_component import Component

from c3prof.analysis.comparison import comparison
from c3prof.app.grid import grid
from c3prof.app.layout import loading
from c3prof.app.parts import card, graph, head, missing
from c3prof.app.query import Query
from c3prof.app.run import Run
from c3prof.renderers.figures_comparison import change_bars

_ABOUT = "Second run minus first. Intervals are 95 %, Welch's over steps, unadjusted; without repeated steps there is none."


def page(run: Run, other: Run | None, _: Query) -> Component:
    """The comparison, once both runs are loaded."""
    if other is None:
        return html.Div([head("Compare"), missing("a second run is needed: c3prof dashboard FIRST --compare SECOND")], className="page")
    if run.report is None or other.report is None or run.trace is None or other.trace is None:
        return loading(other)
    tables = comparison((run.trace, run.report), (other.trace, other.report))
    figure = graph(change_bars(tables["change_by_part"]), "neither run has an overlap table", label="Change by part of the step")
    body = [card(f"{other.name} against {run.name}", figure, wide=True)]
    for name, table in tables.items():
        body.append(
            card(table.schema.title, grid(table, f"{name}-grid") if len(table) else missing("the runs share no such row"), wide=True)
        )
    return html.Div([head("Compare", _ABOUT), *body], className="page grid-page")
