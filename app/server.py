"""Serves the app: binds, says where, opens the browser, ends on Ctrl-C."""

import logging
import secrets
import socket
import webbrowser
from collections.abc import Callable, Sequence

from werkzeug.serving import BaseWSGIServer, make_server

from c3prof.app.factory import create_app
from c3prof.app.guard import is_loopback
from c3prof.app.run import Analyze, Load, Run, analyzed, loaded
from c3prof.errors import WrongSettings

PORT = 8050
_TRIES = 50


def bound_socket(host: str, port: int) -> socket.socket:
    """A listening socket on the port, or on the next free one. WrongSettings when the host cannot be bound."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in (*range(port, min(port + _TRIES, 65_536)), 0):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen(128)
        except PermissionError:
            listener.close()
        except OSError as error:
            listener.close()
            if error.errno not in _IN_USE:
                raise WrongSettings(
                    f"--host {host}: cannot be bound ({error.strerror or error}); give an address of this machine"
                ) from error
        else:
            return listener
    raise WrongSettings(f"--port {port}: no free port found on {host}; give another --port")


def checked_token(host: str, token: str | None) -> str | None:
    """The token to use. WrongSettings when the host can be reached from elsewhere and no token, or a weak one, is given."""
    if token is not None and len(token) < 8:
        raise WrongSettings(f"--token has {len(token)} characters, at least 8 are needed: for example --token {secrets.token_urlsafe(16)}")
    if not is_loopback(host) and token is None:
        raise WrongSettings(
            f"--host {host} lets other machines read the trace, so --token is needed: for example --token {secrets.token_urlsafe(16)}"
        )
    return token


def dashboard(
    paths: Sequence[str],
    compare: Sequence[str] = (),
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    token: str | None = None,
    browser: bool = True,
    say: Callable[[str], None] = lambda _: None,
    load: Load = loaded,
    analyze: Analyze = analyzed,
) -> None:
    """Serves the run in paths until Ctrl-C, beside the one in compare if given.

    say: told the address, once it is bound. Raises WrongSettings before anything is loaded.
    """
    token = checked_token(host, token)
    listener = bound_socket(host, port)
    run = Run(tuple(paths)).start(load, analyze)
    other = Run(tuple(compare)).start(load, analyze) if compare else None
    server = wsgi_server(run, other, listener, host=host, token=token)
    address = _address(listener, host, token)
    say(f"c3prof shows {run.name} on {address} (Ctrl-C ends it)")
    if not is_loopback(host):
        say("Anyone who has this address and its token can read the trace; it is not encrypted.")
    if browser:
        webbrowser.open(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        say("")
    finally:
        server.server_close()
        listener.close()


def wsgi_server(run: Run, other: Run | None, listener: socket.socket, *, host: str, token: str | None) -> BaseWSGIServer:
    """A threaded server of the app on a socket that listens already; several users at once."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # its request log would tell the token and hide our address
    app = create_app(run, other, host=host, token=token)
    return make_server(host, listener.getsockname()[1], app.server, threaded=True, fd=listener.fileno())


def _address(listener: socket.socket, host: str, token: str | None) -> str:
    port = listener.getsockname()[1]
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104 - compared, not bound
    return f"http://{shown}:{port}/" + (f"?token={token}" if token else "")


_IN_USE = frozenset({98, 48, 10048})
"""EADDRINUSE on Linux, macOS and Windows."""
