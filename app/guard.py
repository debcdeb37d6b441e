"""Who may ask the server for what: Host and Origin, the token, what a browser may load; and compression.

Without a token the server is bound to loopback. A page on the web can still make a browser send requests there, under a name that
it has pointed at 127.0.0.1: so the Host header must be one of ours or an address, and a foreign Origin is refused.
"""

import hmac
import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from flask import Flask, Request, Response, request
from isal import igzip

TOKEN_COOKIE = "c3prof-token"  # noqa: S105 - the name of a cookie, no secret
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_COMPRESSED = ("text/", "application/json", "application/javascript")
_WORTH_COMPRESSING = 1_000


def is_loopback(host: str) -> bool:
    """Whether a host to bind is reachable from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def guard(server: Flask, host: str, token: str | None, script_hashes: Iterable[str] = ()) -> None:
    """Refuses what must not be answered, before anything else looks at a request, and sets the headers of every answer.

    host: what the server is bound to; token: what every request must carry, None for none.
    """
    local = is_loopback(host)
    names = _LOOPBACK if local else _LOOPBACK | {host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()}
    policy = _policy(script_hashes)

    @server.before_request
    def _check() -> Response | None:
        if not _is_ours(request.headers.get("Host", ""), names, local=local):
            return _text(403, "This name is not served here (Host header). Open the address that c3prof printed.")
        return _refusal(request, token)

    @server.after_request
    def _finish(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "DENY"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return _compressed(request, response)


def _refusal(asked: Request, token: str | None) -> Response | None:
    origin = asked.headers.get("Origin", "")
    if origin and urlsplit(origin).netloc.lower() != asked.headers.get("Host", "").lower():
        return _text(403, "Requests from other sites are refused (Origin header).")
    if token is None:
        return None
    if _same(asked.args.get("token", ""), token):
        return _with_cookie(asked, token)
    bearer = asked.headers.get("Authorization", "").removeprefix("Bearer ")
    if _same(asked.cookies.get(TOKEN_COOKIE, ""), token) or _same(bearer, token):
        return None
    return _text(401, "A token is needed: open the address that c3prof printed, with ?token=…, or send Authorization: Bearer ….")


def _is_ours(host: str, names: frozenset[str], *, local: bool) -> bool:
    """Whether a Host header names us: a known name, or an address, which no foreign name server can point at us.

    local: only addresses of this machine's loopback count.
    """
    try:
        name = (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return False
    if name in names or is_loopback(name):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return not local


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogatepass"), token.encode())


def _with_cookie(asked: Request, token: str) -> Response:
    """The token moves from the address into a cookie, so that it does not stand in history, logs and links."""
    kept = "&".join(part for part in asked.query_string.decode(errors="replace").split("&") if not part.startswith("token="))
    path = "/" + asked.path.lstrip("/\\")
    response = Response(status=303, headers={"Location": path + (f"?{kept}" if kept else "")})
    response.set_cookie(TOKEN_COOKIE, token, httponly=True, samesite="Strict", secure=asked.is_secure)
    return response


def _text(status: int, message: str) -> Response:
    return Response(message + "\n", status, mimetype="text/plain")


def _policy(script_hashes: Iterable[str]) -> str:
    """Only what this server sends may run: no inline script but Dash's own by hash, nothing from elsewhere."""
    scripts = " ".join(["'self'", *script_hashes])
    return (
        f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
        "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


def _compressed(asked: Request, response: Response) -> Response:
    wanted = "gzip" in asked.headers.get("Accept-Encoding", "") and "Content-Encoding" not in response.headers
    if not wanted or response.status_code != 200 or not str(response.mimetype).startswith(_COMPRESSED):
        return response
    response.direct_passthrough = False
    body = response.get_data()
    if len(body) < _WORTH_COMPRESSING:
        return response
    response.set_data(igzip.compress(body, 1))
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding"
    return response
