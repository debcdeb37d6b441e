"""The Dash app of one run, or of two that are compared."""

from pathlib import Path

from dash import Dash

from c3prof.app import api, callbacks, guard, layout
from c3prof.app.run import Run

_LARGEST_REQUEST = 16_000_000
ASSETS = Path(__file__).parent / "assets"


def create_app(run: Run, other: Run | None = None, *, host: str = "127.0.0.1", token: str | None = None) -> Dash:
    """The app for a run that may still be loading; `app.server` is its WSGI application.

    other: the run that the compare view sets against it; host and token: see c3prof.app.guard.
    """
    app = Dash(
        "c3prof",
        assets_folder=str(ASSETS),
        serve_locally=True,
        suppress_callback_exceptions=True,
        title=f"{run.name} – c3prof",
        update_title="",
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
    )
    app.layout = layout.shell(run)
    callbacks.register(app, run, other)
    app.server.config["MAX_CONTENT_LENGTH"] = _LARGEST_REQUEST
    api.add_api(app.server, run)
    guard.guard(app.server, host, token, app.csp_hashes())
    return app
