"""How fast the dashboard answers: start from a warm cache, zooms and pans, search, memory.

    python -m benchmarks.dashboard [EVENTS …]

The server runs in a process of its own on a generated trace of EVENTS events over 8 ranks that lies in the cache of parsed traces;
the windows are asked for over HTTP one after another, as the browser does, and timed here.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.large_trace import large_trace
from c3prof.app.run import Run, analyzed
from c3prof.app.server import bound_socket, wsgi_server
from c3prof.readers.cache import Cache
from c3prof.run import joined

RANKS = 8
VIEWS = 300
WIDTH = 1_600
TITLES = {
    "answers_after_s": "answers, s after the start",
    "timeline_after_s": "timeline there, s after the start",
    "report_after_s": "report there, s after the start",
    "lanes": "lanes shown",
    "view_median_ms": "a view, median ms",
    "view_p95_ms": "a view, 95th percentile ms",
    "view_max_ms": "a view, slowest ms",
    "largest_view_kb": "largest view, kB",
    "most_rectangles": "most rectangles in a view",
    "lanes_kb": "list of lanes, kB",
    "search_ms": "search, ms",
    "peak_gb": "peak memory, GB",
}
"""What is measured, and how the page says it."""


def serve(folder: str) -> None:
    """Serves what the cache in a folder holds, until it is ended."""
    cache = Cache(Path(folder), 1e12)

    def load(*_: Any) -> Any:
        traces = [cache.trace(f"rank{rank}") for rank in range(RANKS)]
        return joined([trace for trace in traces if trace is not None])

    run = Run(("generated",)).start(load, analyzed)
    listener = bound_socket("127.0.0.1", 0)
    print(listener.getsockname()[1], flush=True)
    wsgi_server(run, None, listener, host="127.0.0.1", token=None).serve_forever()


def asked(port: int, name: str, body: dict[str, Any] | None = None) -> tuple[Any, float, int]:
    """The answer, ms until it was there, and its bytes."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/{name}", data, {"Content-Type": "application/json"})
    begin = time.perf_counter()
    with urllib.request.urlopen(request, timeout=600) as response:
        text = response.read()
    return json.loads(text), (time.perf_counter() - begin) * 1e3, len(text)


def peak_gb(pid: int) -> float:
    """The most memory that a process has held so far (Linux)."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1e6


def windows(end: float, rng: np.random.Generator) -> list[tuple[float, float]]:
    """Walks of a user: from the whole run down in steps of a wheel, pans on the way."""
    found, begin, stop = [], 0.0, end
    for _ in range(VIEWS):
        length = stop - begin
        if length < 20_000:
            begin, stop = 0.0, end
        elif rng.random() < 0.4:
            shift = length * rng.uniform(-0.5, 0.5)
            begin, stop = begin + shift, stop + shift
        else:
            at, factor = rng.uniform(begin, stop), rng.choice([0.5, 0.7, 0.7, 1.3])
            begin, stop = at - (at - begin) * factor, at + (stop - at) * factor
        found.append((begin, stop))
    return found


def measured(events: int) -> dict[str, Any]:
    """All numbers for so many events."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder), 1e12)
        for trace in large_trace(events, RANKS).each_rank():
            cache.keep(f"rank{trace.rank_numbers[0]}", trace)
        del trace
        begin = time.perf_counter()
        server = subprocess.Popen([sys.executable, "-m", "benchmarks.dashboard", "--serve", folder], stdout=subprocess.PIPE, text=True)
        try:
            port = int(server.stdout.readline())
            up = time.perf_counter() - begin
            timeline = _waited(port, "ready", begin)
            report = _waited(port, "done", begin)
            seconds = {"answers_after_s": round(up, 2), "timeline_after_s": timeline, "report_after_s": report}
            return {**seconds, **_walk(port), "peak_gb": round(peak_gb(server.pid), 2)}
        finally:
            server.kill()
            server.wait()


def _waited(port: int, what: str, begin: float) -> float:
    """Seconds from begin until the run says that it is so."""
    while not (state := asked(port, "state")[0])[what]:
        if state["error"]:
            raise SystemExit(state["error"])
        time.sleep(0.1)
    return round(time.perf_counter() - begin, 1)


def _walk(port: int) -> dict[str, Any]:
    structure, _, first = asked(port, "lanes", {})
    keys = [lane["key"] for lane in structure["lanes"] if lane["shown"]]
    times, sizes, rectangles = [], [], []
    for low, high in windows(structure["end"], np.random.default_rng(0)):
        view, ms, size = asked(port, "view", {"lanes": keys, "begin": low, "end": high, "width": WIDTH})
        times.append(ms)
        sizes.append(size)
        rectangles.append(sum(view["counts"]))
    _, search, _ = asked(port, "search", {"lanes": keys, "text": "flash", "at": 0})
    return {
        "lanes": len(keys),
        "view_median_ms": round(float(np.median(times)), 1),
        "view_p95_ms": round(float(np.quantile(times, 0.95)), 1),
        "view_max_ms": round(max(times), 1),
        "largest_view_kb": max(sizes) // 1_000,
        "most_rectangles": max(rectangles),
        "lanes_kb": first // 1_000,
        "search_ms": round(search, 1),
    }


def section(events: list[int]) -> str:
    """The measurements as a Markdown section, a column a number of events."""
    columns = [measured(count) for count in events]
    lines = [["", *(f"{count:,} events" for count in events)], ["---"] * (1 + len(events))]
    lines += [[title, *(f"{column[name]:,}" for column in columns)] for name, title in TITLES.items()]
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## How fast the dashboard answers\n\nFrom a warm cache, {RANKS} ranks, {VIEWS} zooms and pans over HTTP.\n\n{rows}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", nargs="*", type=lambda text: int(float(text)), default=[1_000_000, 10_000_000])
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
    else:
        print(section(given.events))
