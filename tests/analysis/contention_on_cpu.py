"""Real contention on two CPU threads, recorded as a Kineto file: matrix products beside a thread that moves memory.

Run as a script with the file to write: it prints the times of products that are not in the file, alone and beside the
memory thread, taken by turns with those that are. A process of its own, so that the BLAS library can be held to one thread.
"""

import json
import sys
import threading
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

ROUNDS, PRODUCTS = 25, 3
PRODUCT_STREAM, MEMORY_STREAM = 7, 20

Span = tuple[int, int]


class MemoryHog(threading.Thread):
    """Copies 32 MB again and again while `on` is set, and notes each copy."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.on, self.idle, self.over = threading.Event(), threading.Event(), False
        self.source, self.target = np.ones(4 << 20), np.empty(4 << 20)
        self.spans: list[Span] = []

    def run(self) -> None:
        while not self.over:
            if not self.on.wait(0.01):
                continue
            self.idle.clear()
            while self.on.is_set():
                start = perf_counter_ns()
                np.copyto(self.target, self.source)
                self.spans.append((start, perf_counter_ns()))
            self.idle.set()

    def switched(self, on: bool) -> None:
        """Turns it on, or off and waits until it stands still."""
        if on:
            self.on.set()
        else:
            self.on.clear()
            self.idle.wait(1)


def products(count: int, a: Any, b: Any, out: Any) -> list[Span]:
    spans = []
    for _ in range(count):
        start = perf_counter_ns()
        np.dot(a, b, out=out)
        spans.append((start, perf_counter_ns()))
    return spans


def event(category: str, name: str, span: Span, stream: int, args: dict[str, Any]) -> dict[str, Any]:
    start, end = span
    times = {"ts": start / 1000, "dur": (end - start) / 1000}
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": stream, **times, "args": args}


def main(path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b, out = rng.random((384, 384)), rng.random((384, 384)), np.empty((384, 384))
    hog = MemoryHog()
    hog.start()
    products(20, a, b, out)
    events: list[dict[str, Any]] = []
    direct: dict[str, list[int]] = {"alone": [], "beside": []}
    for step in range(ROUNDS):
        begin = perf_counter_ns()
        recorded: list[Span] = []
        for on in (False, True):
            hog.switched(on)
            taken = products(2 * PRODUCTS, a, b, out)  # by turns: the first beside the memory thread has less of it
            direct["beside" if on else "alone"] += [end - start for start, end in taken[step % 2 :: 2]]
            recorded += taken[1 - step % 2 :: 2]
        hog.switched(False)
        end = perf_counter_ns()
        for turn, span in enumerate(recorded):
            number = step * 100 + turn + 1
            at = (begin + 1000 * turn, begin + 1000 * turn + 800)
            events.append(event("cpu_op", "aten::mm", at, 1, {"Input Dims": [[384, 384], [384, 384]]}))
            events.append(event("cuda_runtime", "cudaLaunchKernel", (at[0] + 100, at[1] - 100), 1, {"correlation": number}))
            events.append(event("kernel", "dgemm", span, PRODUCT_STREAM, {"stream": PRODUCT_STREAM, "device": 0, "correlation": number}))
        events.append(event("user_annotation", f"ProfilerStep#{step}", (begin, end), 1, {}))
    hog.over = True
    hog.join()
    copies = {"stream": MEMORY_STREAM, "device": 0}
    events += [event("kernel", "ncclDevKernel_AllReduce_like_copy", span, MEMORY_STREAM, copies) for span in hog.spans]
    path.write_text(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": events}))
    sys.stdout.write(json.dumps(direct))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
