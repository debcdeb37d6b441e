"""c3prof dashboard: the app on a run, or on two that are compared."""

from functools import partial
from typing import Annotated

import typer

from c3prof.commands import options
from c3prof.config import config
from c3prof.errors import MissingExtra

Compare = Annotated[list[str] | None, typer.Option("--compare", metavar="PATH", help="A second run, set against the first.")]
Host = Annotated[str, typer.Option("--host", help="Address to bind; another than this machine's own needs --token.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; the next free one if it is taken.")]
Token = Annotated[str | None, typer.Option("--token", help="What every request must carry.", envvar="C3PROF_TOKEN", show_envvar=True)]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")]


def dashboard(
    paths: options.Paths = None,
    *,
    compare: Compare = None,
    host: Host = "127.0.0.1",
    port: Port = 8050,
    token: Token = None,
    no_browser: NoBrowser = False,
    sample: options.Sample = None,
    rules: options.Rules = None,
    no_cache: options.NoCache = None,
) -> None:
    """Explore a run in the browser: overview, timeline, slowdown, collectives, ranks."""
    from c3prof.commands.analyze import given

    asked = config({"rules": rules, "cache": False if no_cache else None})
    wanted = given(paths, sample)
    try:
        import dash  # noqa: F401 - whether it is there
        import dash_ag_grid  # noqa: F401 - as above
    except ImportError as error:
        raise MissingExtra(error.name or "dash", "app", "the dashboard") from None
    from c3prof.app import run, server

    load, analyze = partial(run.loaded, asked=asked), partial(run.analyzed, asked=asked)
    served = {"host": host, "port": port, "token": token}
    server.dashboard(wanted, compare or (), **served, browser=not no_browser, say=print, load=load, analyze=analyze)  # type: ignore[arg-type] # one dict for three types
