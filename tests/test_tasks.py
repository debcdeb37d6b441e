"""Where tasks run does not show in what they give; a worker that dies loses nothing."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from c3prof.analysis import combine
from c3prof.analysis.settings import Settings
from c3prof.errors import C3profError, UnreadableInput, WrongSettings
from c3prof.pipeline import _part, report
from c3prof.readers import load
from c3prof.readers.sources import found
from c3prof.renderers import json
from c3prof.sample_traces.rank_files import write_rank_files
from c3prof.sample_traces.ranks import Job
from c3prof.tasks import Place, Task, completed, in_threads, usable_cpus

JOB = Job(ranks=4, tp=2, layers=2, steps=3, buckets=2, clock_ns=5_000_000, drift_ppm=20, ranks_per_host=1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    write_rank_files(JOB, folder, 600)
    return folder


def doubled(value: int) -> int:
    return 2 * value


def fatal_once(job: tuple[Path, Any]) -> Any:
    """Kills its own process the first time that it sees this job."""
    marker, value = job
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def fatal(value: int) -> int:
    if value == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def part_or_death(job: tuple[Path, Any], asked: dict[str, Any]) -> Any:
    return _part(fatal_once(job), asked, Settings(), {})


def running(function: Any, arguments: list[Any], place: Place, need: int = 0) -> list[Any]:
    results = dict(completed(function, [Task(a, need, f"input {i}") for i, a in enumerate(arguments)], place))
    return [results[i] for i in range(len(arguments))]


def test_threads_give_results_in_order_and_work_side_by_side() -> None:
    together = threading.Barrier(2 if usable_cpus() > 1 else 1)

    def met(value: int) -> int:
        together.wait(10)  # breaks unless another thread is here, too
        return doubled(value)

    assert in_threads(met, range(8)) == [doubled(value) for value in range(8)]
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda value: 1 // value, [1, 0, 1])


def test_a_folder_is_loaded_with_what_can_be_read_of_it(run: Path, tmp_path: Path) -> None:
    for file in run.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    whole = load(tmp_path)
    (tmp_path / "broken.json").write_text('{"traceEvents": [{"ph": "X"')
    read: list[int] = []
    trace = load(tmp_path, progress=read.append)
    assert trace.activities.equals(whole.activities)
    assert [w.path for w in trace.warnings if w.code == "unreadable"] == ["broken.json"]
    assert sum(read) == sum(file.stat().st_size for file in tmp_path.iterdir())


def test_local_processes_give_every_result() -> None:
    assert running(doubled, list(range(7)), Place(workers=2)) == [0, 2, 4, 6, 8, 10, 12]


def test_memory_cap_lets_one_run_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    beside: list[int] = []

    submitted: list[Any] = []
    submit = ProcessPoolExecutor.submit

    def watched(pool: ProcessPoolExecutor, *args: Any) -> Any:
        beside.append(sum(not future.done() for future in submitted))
        submitted.append(submit(pool, *args))
        return submitted[-1]

    monkeypatch.setattr(ProcessPoolExecutor, "submit", watched)
    assert running(doubled, list(range(4)), Place(workers=2, memory_bytes=150), need=100) == [0, 2, 4, 6]
    assert beside == [0, 0, 0, 0]


def test_local_worker_that_dies_loses_nothing(tmp_path: Path) -> None:
    jobs = [(tmp_path / ("m1" if i == 1 else "there"), i) for i in range(5)]
    (tmp_path / "there").touch()
    assert running(fatal_once, jobs, Place(workers=2)) == [0, 1, 2, 3, 4]


def test_task_that_always_kills_its_worker_is_an_error_beside_the_others() -> None:
    results = running(fatal, list(range(4)), Place(workers=2), need=2_000_000_000)
    assert [r for r in results if not isinstance(r, C3profError)] == [0, 1, 3]
    assert isinstance(results[2], UnreadableInput)
    assert "input 2: the process that read it was killed twice" in str(results[2])
    assert "2.0 GB" in str(results[2])


def test_consumer_that_stops_ends_the_processes() -> None:
    results = completed(time.sleep, [Task(s, 0, "") for s in (0.0, 60.0, 60.0)], Place(workers=2))
    began = time.monotonic()
    assert next(results) == (0, None)
    results.close()  # type: ignore[attr-defined]  # a generator, declared as its interface
    assert time.monotonic() - began < 30


def test_unknown_cluster_and_silent_scheduler_are_said() -> None:
    pytest.importorskip("distributed", reason="needs the extra cluster")
    with pytest.raises(WrongSettings, match="expected local"):
        running(doubled, [1], Place(cluster="slurm"))
    with pytest.raises(WrongSettings, match="no dask scheduler answers"):
        running(doubled, [1], Place(scheduler="tcp://127.0.0.1:9"))


def text(run: Path, **asked: Any) -> str:
    return json.text(report([str(run)], {"cache": False, **asked}))


def test_two_local_workers_give_the_same_bytes(run: Path) -> None:
    assert text(run, workers=2) == text(run, workers=1)


def test_one_progress_bar_over_all_inputs(run: Path) -> None:
    for workers in (1, 2):
        ticks: list[tuple[int, int, str]] = []
        report([str(run)], {"cache": False, "workers": workers}, progress=lambda *tick, seen=ticks: seen.append(tick))
        assert {total for _, total, _ in ticks} == {sum(read for read, _, _ in ticks)}


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a real cluster of two worker processes."""
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="localhost:0", silence_logs=50) as cluster:
        yield cluster.scheduler_address


@pytest.mark.filterwarnings("default")  # distributed warns of sockets and threads of its own while it ends
def test_dask_gives_the_same_bytes(run: Path, scheduler: str) -> None:
    here = text(run, workers=1)
    assert text(run, scheduler=scheduler) == here
    assert text(run, cluster="local", workers=1) == here


@pytest.mark.filterwarnings("default")
def test_dask_worker_killed_in_the_middle_loses_nothing(run: Path, scheduler: str, tmp_path: Path) -> None:
    sources = found([str(run)]).sources
    (tmp_path / "there").touch()
    jobs = [(tmp_path / ("second" if at == 1 else "there"), (source, at)) for at, source in enumerate(sources)]
    place = Place(scheduler=scheduler)
    parts = running(partial(part_or_death, asked={"cache": False}), jobs, place)
    assert (tmp_path / "second").exists()
    here: list[Any] = [_part((source, at), {"cache": False}, Settings(), {}) for at, source in enumerate(sources)]
    assert json.text(combine(parts, Settings())) == json.text(combine(here, Settings()))
