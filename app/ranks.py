"""The view of ranks: who is exposed, who waits, who makes the others wait; and how far the clocks agree."""

from dash import dcc, html
from dash.development.base_component import Component

from c3prof.app import ids
from c3prof.app.grid import grid
from c3prof.app.parts import card, graph, head, missing, warnings, why_empty
from c3prof.app.query import Query
from c3prof.app.run import Run
from c3prof.renderers import figures
from c3prof.renderers.figures import Figure
from c3prof.renderers.figures_collectives import MEASURES, rank_map, straggler_bars

_ABOUT = "One row a rank, one column a step. Arrivals are compared on aligned clocks; a skew below the clock bound is nobody's fault."


def page(run: Run, query: Query) -> Component:
    """The map of ranks and steps, stragglers and clocks."""
    report = run.report
    if report is None:
        raise ValueError("the run is not loaded")
    measure = query.get("measure") if query.get("measure") in MEASURES else "exposed_ns"
    choice = dcc.RadioItems(
        id=ids.RANKS_MEASURE,
        options=[{"label": label, "value": name} for name, label in MEASURES.items()],
        value=measure,
        inline=True,
        className="choice",
    )
    body: list[Component | None] = [
        card("Ranks and steps", choice, graph(figure(run, measure), "", ids.RANKS_MAP, "Map of ranks and steps"), wide=True),
        card(
            "Who the others wait for",
            graph(straggler_bars(report), why_empty(report, "stragglers"), label="Wait caused by rank"),
            wide=True,
        ),
    ]
    for name, title in (
        ("stragglers", "Stragglers"),
        ("waits_by_rank", "Waiting by rank"),
        ("clocks", "Clocks"),
        ("overlap", "Overlap by rank"),
    ):
        table = report.get(name)
        content = grid(table, f"{name}-grid") if table is not None and len(table) else missing(why_empty(report, name))
        body.append(card(title, content, wide=True))
    return html.Div(
        [head("Ranks", _ABOUT), *body, warnings(report, ("missing-ranks", "duplicate-rank", "no-common-clock"))], className="page grid-page"
    )


def figure(run: Run, measure: str) -> Figure:
    """The map of a measure; an empty one with the reason as its title when nothing is known of it."""
    made = rank_map(run.report, measure) if run.report is not None and measure in MEASURES else None
    if made is not None:
        return made
    what = MEASURES.get(measure, "this")
    return figures.figure([], height=160, title={"text": f"Nothing to show: {what} is not known in this trace", "font": {"size": 14}})
