"""What surrounds every view: navigation, the place for a page, the state of loading."""

from dash import dcc, html
from dash.development.base_component import Component

from c3prof.app import ids
from c3prof.app.run import Run

VIEWS = {
    "/": "Overview",
    "/timeline": "Timeline",
    "/slowdown": "Slowdown",
    "/collectives": "Collectives",
    "/ranks": "Ranks",
    "/tables": "Tables",
}
COMPARE = {"/compare": "Compare"}


def shell(run: Run) -> Component:
    """The frame of the app, which stays while pages change."""
    return html.Div(
        [
            dcc.Location(id=ids.LOCATION, refresh=False),
            dcc.Interval(id=ids.POLL, interval=500),
            html.A("Skip to content", href="#content", className="skip"),
            html.Aside(
                [
                    html.Div([html.Span("c3", className="logo-mark"), html.Span("prof")], className="logo"),
                    html.Div(run.name, className="run-name", title=", ".join(run.paths)),
                    html.Nav(id=ids.NAVIGATION, **{"aria-label": "Views"}),
                    html.Button("Light / dark", id=ids.THEME, className="quiet", title="Switch between light and dark"),
                ],
                className="side",
            ),
            html.Main([html.Div(id=ids.STATUS), html.Div(id=ids.PAGE)], id="content", tabIndex=-1),
        ],
        className="shell",
    )


def navigation(path: str, *, compare: bool) -> list[Component]:
    """Links to the views, the current one marked."""
    views = VIEWS | (COMPARE if compare else {})
    return [dcc.Link(name, href=href, className="nav-link current" if href == path else "nav-link") for href, name in views.items()]


def loading(run: Run) -> Component:
    """What a run that is not there yet is doing; or why it never will be."""
    if run.error:
        return html.Div([html.H1("This run cannot be shown"), html.P(run.error)], className="card failed", role="alert")
    percent = round(run.share * 100)
    bar = html.Div(html.Div(style={"width": f"{max(percent, 3)}%"}, className="bar-done"), className="bar", role="progressbar")
    early = [html.P(["The ", dcc.Link("timeline", href="/timeline"), " is there already."])] if run.timeline is not None else []
    return html.Div([html.H1(f"Loading {run.name}"), html.P(f"{run.doing} …", role="status"), bar, *early], className="card loading")
