"""Real ranks for tests: processes that a fork server with torch already imported starts in milliseconds."""

import json
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

_PRELOAD = [
    "torch.distributed._functional_collectives",
    "torch.distributed.fsdp",
    "torch.distributed.pipelining",
    "torch.distributed.tensor.parallel",
    "torch._dynamo",
    "torch.profiler",
    "c3prof.collectors.session",
]
_forkserver = multiprocessing.get_context("forkserver")
_forkserver.set_forkserver_preload(_PRELOAD)

Target = Callable[..., None]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Ranks:
    """The processes of one job. target(rank, world, port, *args) runs in each."""

    def __init__(self, target: Target, world: int, *args: Any) -> None:
        port = free_port()
        self.processes: list[BaseProcess] = [_forkserver.Process(target=target, args=(rank, world, port, *args)) for rank in range(world)]
        for process in self.processes:
            process.start()

    def signal(self, number: int, *ranks: int) -> None:
        for rank in ranks or range(len(self.processes)):
            pid = self.processes[rank].pid
            assert pid is not None
            os.kill(pid, number)

    def exit_codes(self, timeout_s: float = 60) -> list[int | None]:
        """The exit codes; a rank that is still alive after the time is killed and has None."""
        deadline = time.monotonic() + timeout_s
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
        codes = [process.exitcode for process in self.processes]
        for process in self.processes:
            if process.is_alive():
                process.kill()
                process.join()
        return codes


@contextmanager
def ranks(target: Target, world: int, *args: Any) -> Iterator[Ranks]:
    """A running job; what is left of it at the end is killed."""
    job = Ranks(target, world, *args)
    try:
        yield job
    finally:
        job.exit_codes(0)


def run_ranks(target: Target, world: int, *args: Any, timeout_s: float = 60) -> list[int | None]:
    """The exit codes of a job that runs to its end."""
    with ranks(target, world, *args) as job:
        return job.exit_codes(timeout_s)


def until(condition: Callable[[], Any], timeout_s: float = 30) -> Any:
    """What condition() gives as soon as it is true; AssertionError if it never is."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError("the condition did not come true in time")


def manifest(folder: Path, rank: int) -> dict[str, Any]:
    """The manifest of a rank, {} while there is none."""
    path = folder / "ranks" / f"rank{rank:05d}" / "manifest.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def lines(folder: Path, rank: int, name: str) -> list[dict[str, Any]]:
    """The records of a line file; fails on a line that is not whole."""
    path = folder / "ranks" / f"rank{rank:05d}" / name
    content = path.read_text() if path.exists() else ""
    assert content == "" or content.endswith("\n")
    return [json.loads(line) for line in content.splitlines()]


SIGTERM, SIGINT, SIGKILL = signal.SIGTERM, signal.SIGINT, signal.SIGKILL
