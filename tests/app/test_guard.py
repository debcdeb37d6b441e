"""Who gets an answer: Host, Origin, token, paths; and what the answers' headers allow."""

import gzip

import pytest

from c3prof.app.factory import create_app
from c3prof.app.guard import _is_ours, is_loopback

TOKEN = "a-long-enough-token"
HERE = {"Host": "127.0.0.1:8050"}


@pytest.fixture(scope="module")
def local(run):
    return create_app(run).server.test_client()


@pytest.fixture(scope="module")
def public(run):
    return create_app(run, host="0.0.0.0", token=TOKEN).server.test_client


@pytest.mark.parametrize("host", ["127.0.0.1:8050", "localhost:8050", "LOCALHOST", "[::1]:8050", "127.8.9.1"])
def test_loopback_names_are_served(local, host):
    assert local.get("/api/state", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8050", "127.0.0.1.evil.example", "localhost.evil.example", "192.168.1.5:8050", "", "a@b:1"],
)
def test_other_names_are_refused(local, host):
    answer = local.get("/", headers={"Host": host})
    assert answer.status_code == 403
    assert b"c3prof" not in answer.data or b"Host header" in answer.data


@pytest.mark.parametrize("host", ["[::1", "]", "[", "::::", "127.0.0.1:port", "\u2100"])
def test_a_host_that_cannot_be_read_is_not_ours(host):
    assert not _is_ours(host, frozenset({"localhost"}), local=True) or host.startswith("127.")


def test_another_site_cannot_ask(local):
    answer = local.post("/api/view", json={}, headers={**HERE, "Origin": "https://evil.example"})
    assert answer.status_code == 403
    own = local.post("/api/search", json={"lanes": [], "text": "x"}, headers={**HERE, "Origin": "http://127.0.0.1:8050"})
    assert own.status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/state", "/api/csv?table=overlap", "/_dash-layout", "/assets/style.css", "/nothing"])
def test_every_request_needs_the_token(public, path):
    assert public().get(path, headers=HERE, buffered=True).status_code == 401
    assert public().get(path, headers={**HERE, "Authorization": "Bearer wrong"}, buffered=True).status_code == 401
    assert public().get(path, headers={**HERE, "Authorization": f"Bearer {TOKEN}"}, buffered=True).status_code in (200, 404)


def test_a_token_in_the_address_becomes_a_cookie_and_leaves_the_address(public):
    client = public()
    answer = client.get(f"/timeline?token={TOKEN}&t0=5", headers=HERE, buffered=True)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/timeline?t0=5")
    assert "HttpOnly" in answer.headers["Set-Cookie"]
    assert "SameSite=Strict" in answer.headers["Set-Cookie"]
    client.set_cookie("c3prof-token", TOKEN, domain="127.0.0.1")
    assert client.get("/api/state", headers=HERE, buffered=True).status_code == 200


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", "ü", "%00"])
def test_a_wrong_token_is_refused(public, token):
    assert public().get("/api/state", query_string={"token": token}, headers=HERE, buffered=True).status_code == 401


def test_a_redirect_stays_here(public):
    answer = public().get(f"//evil.example/?token={TOKEN}", headers=HERE, buffered=True)
    assert not answer.headers.get("Location", "/").startswith("//")


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../factory.py",
        "/assets/..%2ffactory.py",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets//etc/passwd",
        "/_dash-component-suites/dash/../../../etc/passwd",
        "/api/csv?table=../../etc/passwd",
        "/api/csv?table=/etc/passwd",
        "/etc/passwd",
    ],
)
def test_no_file_is_reached_by_a_path(local, path):
    answer = local.get(path, headers=HERE, buffered=True)
    assert b"root:" not in answer.data
    assert b"def create_app" not in answer.data


def test_only_what_we_send_may_run(local):
    answer = local.get("/", headers=HERE, buffered=True)
    policy = answer.headers["Content-Security-Policy"]
    scripts = next(part for part in policy.split(";") if part.strip().startswith("script-src"))
    assert "'unsafe-inline'" not in scripts
    assert "'unsafe-eval'" not in scripts
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_answers_are_compressed_for_who_can_read_it(local):
    plain = local.get("/assets/style.css", headers=HERE, buffered=True)
    packed = local.get("/assets/style.css", headers={**HERE, "Accept-Encoding": "gzip, br"}, buffered=True)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data


@pytest.mark.parametrize(
    ("host", "local_only"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("gpu1", False)]
)
def test_loopback_is_known(host, local_only):
    assert is_loopback(host) is local_only
