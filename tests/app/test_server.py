"""Starting and ending: which address, which token, and a broken trace that shows its error."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

from c3prof.app.layout import loading
from c3prof.app.run import Run, loaded
from c3prof.app.server import bound_socket, checked_token, wsgi_server
from c3prof.errors import UnreadableInput, WrongSettings


def test_another_host_needs_a_token():
    with pytest.raises(WrongSettings, match="--token"):
        checked_token("0.0.0.0", None)
    with pytest.raises(WrongSettings, match="at least 8"):
        checked_token("0.0.0.0", "short")
    assert checked_token("127.0.0.1", None) is None
    assert checked_token("0.0.0.0", "long enough token") == "long enough token"


def test_a_taken_port_leads_to_a_free_one():
    first = bound_socket("127.0.0.1", 0)
    taken = first.getsockname()[1]
    second = bound_socket("127.0.0.1", taken)
    assert second.getsockname()[1] != taken
    first.close()
    second.close()


def test_a_host_that_is_not_ours_is_told():
    with pytest.raises(WrongSettings, match="cannot be bound"):
        bound_socket("203.0.113.7", 0)


@pytest.mark.parametrize("content", [b"", b"not json", b'{"traceEvents": []}'])
def test_a_broken_trace_is_an_error_in_the_page(tmp_path, content):
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    run = Run((str(path),)).start(loaded, lambda *_: pytest.fail("nothing to analyze")).wait()
    assert run.done
    assert "broken.json" in run.error
    assert "broken.json" in str(loading(run))


def test_whatever_fails_the_app_stays_up():
    def fails(*_):
        raise ZeroDivisionError("what")

    run = Run(("x.json",)).start(fails, fails).wait()
    assert "ZeroDivisionError" in run.error
    refused = Run(("y.json",)).start(lambda *_: (_ for _ in ()).throw(UnreadableInput("y.json: gone")), fails).wait()
    assert refused.error == "y.json: gone"


def test_several_users_are_answered_at_once(run):
    listener = bound_socket("127.0.0.1", 0)
    server = wsgi_server(run, None, listener, host="127.0.0.1", token=None)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    port = listener.getsockname()[1]
    idle = socket.create_connection(("127.0.0.1", port))  # a user who is connected and says nothing
    answers = []
    lanes = list(run.timeline.lanes)
    body = json.dumps({"lanes": lanes, "begin": 0, "end": 1e6, "width": 500}).encode()

    def ask():
        request = urllib.request.Request(f"http://127.0.0.1:{port}/api/view", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as response:
            answers.append(json.load(response)["lanes"])

    users = [threading.Thread(target=ask) for _ in range(8)]
    for user in users:
        user.start()
    for user in users:
        user.join(20)
    idle.close()
    server.shutdown()
    server.server_close()
    listener.close()
    assert answers == [lanes] * 8


def test_ctrl_c_ends_it_cleanly(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("{}")
    # a shell without job control has children of the background ignore SIGINT
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heard}; from c3prof.app.server import dashboard; dashboard([{str(path)!r}], port=0, browser=False, say=lambda text: print(text, flush=True))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "http://127.0.0.1:" in process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "Traceback" not in errors
