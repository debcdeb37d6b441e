"""Where independent tasks run: local processes under a memory cap, workers of dask.distributed, or threads.

A task is one input; it gives something small. Which process ran it, in which order, or how often it had to start over
after a worker died, must not show in the result.
"""

import gc
import logging
import multiprocessing
import os
import signal
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from c3prof.errors import C3profError, MissingExtra, UnreadableInput, WrongSettings

A = TypeVar("A")
R = TypeVar("R")

FREE_SHARE = 0.6
"""Share of the free memory that tasks may use together, unless the user says how much."""


@dataclass(frozen=True)
class Task(Generic[A]):
    """An argument, the memory that its work will take at its peak (an estimate), and what to call it in a message."""

    argument: A
    need_bytes: int
    name: str


@dataclass(frozen=True)
class Place:
    """Where tasks run. workers: processes (0: as many as CPUs may be used); memory_bytes: cap over all of them (0: 60 % of
    what is free); scheduler: address of a running dask scheduler; cluster: "local" for one of dask's own on this machine."""

    workers: int = 0
    memory_bytes: int = 0
    scheduler: str = ""
    cluster: str = ""

    @property
    def processes(self) -> int:
        return self.workers or usable_cpus()

    @property
    def on_dask(self) -> bool:
        return bool(self.scheduler or self.cluster)


def completed(function: Callable[[A], R], tasks: Sequence[Task[A]], place: Place) -> Iterator[tuple[int, R | C3profError]]:
    """(position, result) of each task as it is done. function and arguments must be picklable.

    A local worker that is killed costs its task a second try alone; killed again, its result is an UnreadableInput that
    says so. dask gives a task whose worker died to another, up to its distributed.scheduler.allowed-failures (3) times.
    """
    if place.on_dask:
        yield from _on_dask(function, tasks, place)
    else:
        yield from _in_processes(function, tasks, place)


def in_threads(function: Callable[[A], R], arguments: Sequence[A]) -> list[R]:
    """function of each argument, in their order, in as many threads as CPUs.

    For work that mostly runs without the interpreter's lock, and whose results are too large to be handed between processes.
    """
    if len(arguments) < 2 or usable_cpus() < 2:
        return [function(argument) for argument in arguments]
    with ThreadPoolExecutor(min(usable_cpus(), len(arguments))) as pool:
        return list(pool.map(function, arguments))


def usable_cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_bytes() -> int:
    """Memory that is free now; a quarter of what there is where the system does not say."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (ValueError, AttributeError, OSError):
        return 4 << 30


# --- local processes


def _in_processes(function: Callable[[A], R], tasks: Sequence[Task[A]], place: Place) -> Iterator[tuple[int, R | C3profError]]:
    left = set(range(len(tasks)))
    cap = place.memory_bytes or int(FREE_SHARE * free_bytes())
    try:
        with _pool(min(place.processes, len(tasks))) as pool:
            for position, result in _admitted(pool, function, tasks, cap, place.processes):
                left.discard(position)
                yield position, result
    except BrokenProcessPool:
        for position in sorted(left):
            yield position, _alone(function, tasks[position])


def _admitted(
    pool: ProcessPoolExecutor, function: Callable[[A], R], tasks: Sequence[Task[A]], cap: int, most: int
) -> Iterator[tuple[int, R]]:
    """Submits a task when its need fits under the cap beside the running ones, or when nothing else runs."""
    waiting = list(range(len(tasks)))
    running: dict[Future[R], int] = {}
    while waiting or running:
        used = sum(tasks[position].need_bytes for position in running.values())
        while waiting and len(running) < most and (not running or used + tasks[waiting[0]].need_bytes <= cap):
            position = waiting.pop(0)
            running[pool.submit(function, tasks[position].argument)] = position
            used += tasks[position].need_bytes
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future.result()


def _alone(function: Callable[[A], R], task: Task[A]) -> R | C3profError:
    try:
        with _pool(1) as pool:
            return pool.submit(function, task.argument).result()
    except BrokenProcessPool:
        return UnreadableInput(
            f"{task.name}: the process that read it was killed twice, probably for lack of memory "
            f"(it may need about {task.need_bytes / 1e9:.1f} GB); look at fewer steps, or read it on a larger machine"
        )


WORTH_WORKERS = 200_000_000
"""Bytes of JSON from which several processes are worth their start (about a second each)."""


def text_bytes(path: str, size: int) -> int:
    """Bytes of JSON in an input, by its size as stored: gzip leaves about a twelfth of a trace."""
    return size * (1 if path.endswith(".json") else 12)


def prepared(paths: Sequence[str]) -> bool:
    """Whether the process that forks the workers was started: several large local inputs are to be read.

    It imports what the workers need while this process still imports its own; call it before anything heavy is imported.
    """
    if usable_cpus() < 2 or "forkserver" not in multiprocessing.get_all_start_methods():
        return False
    try:
        files = [file for path in paths if "://" not in path for file in _files_in(Path(path))]
        total = sum(text_bytes(file.name, file.stat().st_size) for file in files)
    except OSError:  # who reads the input says what is wrong with it
        return False
    if len(files) < 2 or total < WORTH_WORKERS:
        return False
    _context()
    from multiprocessing import forkserver  # noqa: PLC0415 - not on every system

    forkserver.ensure_running()
    return True


def _files_in(path: Path) -> list[Path]:
    if path.is_dir():
        return list(islice((file for file in path.rglob("*") if file.is_file()), 10_000))
    return [path] if path.is_file() else []


def _context() -> Any:
    """How workers start: forked from a process that has imported everything and runs nothing else; or afresh."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["c3prof.pipeline"])
    return context


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes, gone at the end whatever happened: nobody waits for work that nobody wants."""
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, mp_context=_context(), initializer=_begin)
    finished = False
    try:
        yield pool
        finished = True
    finally:
        pool.shutdown(wait=finished, cancel_futures=True)
        if not finished:
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()


def _begin() -> None:
    """First thing in a worker: Ctrl-C goes to every process of the terminal, the parent answers it and ends the others.

    What was imported before the fork is shared memory; the garbage collector would write to all of it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()


# --- dask


def _on_dask(function: Callable[[A], R], tasks: Sequence[Task[A]], place: Place) -> Iterator[tuple[int, R | C3profError]]:
    try:
        import distributed  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise MissingExtra("dask.distributed", "cluster", "--scheduler and --cluster") from error
    run = uuid.uuid4().hex  # a scheduler answers equal keys with one result, also to another user
    with _client(distributed, place) as client:
        futures = client.map(
            function,
            [task.argument for task in tasks],
            pure=False,
            key=[f"c3prof-{run}-{i}-{task.name}" for i, task in enumerate(tasks)],
        )
        positions = {future.key: position for position, future in enumerate(futures)}
        for future in distributed.as_completed(futures, loop=client.loop):
            position = positions[future.key]
            yield position, _result(distributed, future, tasks[position])
            futures[position] = None
            future.release()


def _result(distributed: Any, future: Any, task: Task[A]) -> Any:
    try:
        return future.result()
    except distributed.KilledWorker:
        return UnreadableInput(f"{task.name}: every worker that read it died, probably for lack of memory; give the workers more")


@contextmanager
def _client(distributed: Any, place: Place) -> Iterator[Any]:
    if place.scheduler:
        try:
            client = distributed.Client(place.scheduler, timeout="10s", set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise WrongSettings(f"--scheduler {place.scheduler}: no dask scheduler answers there ({error})") from error
        with client:
            yield client
        return
    if place.cluster != "local":
        raise WrongSettings(f"--cluster {place.cluster}: expected local; for another cluster start it and give --scheduler ADDRESS")
    memory = place.memory_bytes // place.processes if place.memory_bytes else "auto"
    quiet = {"silence_logs": logging.CRITICAL, "dashboard_address": "localhost:0"}
    with (
        distributed.LocalCluster(n_workers=place.processes, threads_per_worker=1, memory_limit=memory, **quiet) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
