"""Scale of everything about many ranks, on generated jobs.

    python benchmarks/ranks.py [join|pool|load|memory]     # all four without a word

join: 64, 256 and 1,024 ranks of 2,000 collectives each, joined; seconds, GB and microseconds a record.
pool: 8 ranks of 500,000 events analyzed with 1 and 2 workers: report() in one process, and the command as a whole.
load: the same files loaded into one Trace on one core, and on two by threads and by processes.
memory: 64 ranks of 50,000 events under a cap of 2 GB; peak memory of all processes together.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.processes import run
from c3prof import readers
from c3prof.analysis.ranks import across_ranks
from c3prof.analysis.settings import Settings
from c3prof.pipeline import report
from c3prof.readers.sources import found
from c3prof.run import joined
from c3prof.sample_traces.rank_files import write_rank_files
from c3prof.sample_traces.ranks import Job, simulated

ROOT = Path(__file__).resolve().parents[1]


def join(ranks: int) -> None:
    """Prints one row; runs in a process of its own, so that its peak memory is its own."""
    job = Job(ranks=ranks, tp=8, layers=160, steps=10, buckets=39, clock_ns=5_000_000, drift_ppm=20, window=2)
    trace = simulated(job).trace
    before = _peak_gb(os.getpid())
    began, cpu_began = time.perf_counter(), time.process_time()
    tables = across_ranks(trace, {}, Settings())
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    n = len(tables[0])
    print(
        f"| {ranks:,} | {n:,} | {seconds:.1f} s | {cpu:.1f} s | {1e6 * cpu / n:.2f} µs | {_peak_gb(os.getpid()):.2f} GB ({before:.2f} GB) |"
    )


def eight_ranks(folder: str, events: int) -> None:
    write_rank_files(Job(ranks=8, tp=2, layers=8, steps=20, clock_ns=5_000_000, drift_ppm=20), Path(folder), events)


def pool(folder: str, repeats: int) -> None:
    """Prints a row for report() and one for the command."""

    def inside(workers: int) -> float:
        began = time.perf_counter()
        report([folder], {"cache": False, "workers": workers})
        return time.perf_counter() - began

    def command(workers: int) -> float:
        asked = ["analyze", folder, "--no-cache", "--quiet", "--workers", str(workers)]
        return run([sys.executable, "-m", "c3prof.cli", *asked], PYTHONPATH=str(ROOT)).wall_s

    print("| 8 ranks analyzed | 1 worker | 2 workers | ratio |\n|---|---|---|---|")
    for name, measure in (("report() in one process", inside), ("the whole command", command)):
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(repeats):
            for workers, seconds in times.items():
                seconds.append(measure(workers))
        one, two = (statistics.median(seconds) for seconds in times.values())
        print(f"| {name} | {one:.1f} s | {two:.1f} s | {one / two:.2f} × |")


def load(folder: str, repeats: int) -> None:
    """Prints a row a way to load all ranks into one Trace, each measured in processes of its own."""
    times: dict[str, list[float]] = {way: [] for way in LOADS}
    for _ in range(repeats):
        for way, seconds in times.items():
            done = subprocess.run([sys.executable, __file__, "load", "--way", way, "--folder", folder], capture_output=True, check=True)
            seconds.append(float(done.stdout))
    medians = {way: statistics.median(seconds) for way, seconds in times.items()}
    print("| 8 ranks loaded | time | ratio to one core |\n|---|---|---|")
    for way, seconds in medians.items():
        print(f"| {way} | {seconds:.2f} s | {medians[ONE_CORE] / seconds:.2f} × |")


ONE_CORE, THREADS, PROCESSES = "one core", "two cores, threads (what load() does)", "two cores, processes that hand over their traces"
LOADS = (ONE_CORE, THREADS, PROCESSES)


def loaded_by(way: str, folder: str) -> float:
    """Seconds to load the folder in one of the LOADS; for a process of its own, since it gives cores away."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: 1 if way == ONE_CORE else 2])
    began = time.perf_counter()
    if way == PROCESSES:
        with ProcessPoolExecutor(2) as workers:
            joined(list(workers.map(readers.loaded, found(folder).sources)))
    else:
        readers.load(folder)
    return time.perf_counter() - began


def memory(ranks: int, events: int, cap_gb: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_rank_files(Job(ranks=ranks, tp=8, layers=4, steps=5), Path(folder), events)
        done = threading.Event()
        peak = [0.0]

        def watch() -> None:
            while not done.wait(0.2):
                peak[0] = max(peak[0], _resident_gb())

        watcher = threading.Thread(target=watch)
        watcher.start()
        began = time.perf_counter()
        report([folder], {"cache": False, "workers": 2, "memory_gb": cap_gb})
        seconds = time.perf_counter() - began
        done.set()
        watcher.join()
        print(
            f"{ranks} ranks of {events:,} events analyzed by 2 workers under a cap of {cap_gb:g} GB: {seconds:.1f} s, "
            f"all processes together {peak[0]:.2f} GB at most."
        )


def _peak_gb(pid: int) -> float:
    return _status_gb(pid, "VmHWM")


def _resident_gb() -> float:
    """Resident memory of this process and its children."""
    tree = subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False).stdout.split()
    return sum(_status_gb(int(pid), "VmRSS") for pid in (os.getpid(), *tree))


def _status_gb(pid: int, key: str) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1e6 for line in lines if line.startswith(key)), 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["join", "pool", "load", "memory"], nargs="?")
    parser.add_argument("--ranks", type=int, help="join: only this many")
    parser.add_argument("--way", choices=LOADS, help="load: one of its ways, of --folder; prints seconds")
    parser.add_argument("--folder")
    parser.add_argument("--events", type=int, default=500_000, help="pool, load: events a rank")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    if asked.way:
        print(loaded_by(asked.way, asked.folder))
        return
    if asked.ranks:
        join(asked.ranks)
        return
    print("## Scale over ranks\n")
    if asked.what in (None, "join"):
        print("| ranks joined | records | wall | CPU | CPU a record | peak (before the join) |\n|---|---|---|---|---|---|", flush=True)
        for ranks in (64, 256, 1024):
            subprocess.run([sys.executable, __file__, "join", "--ranks", str(ranks)], check=True)
    with tempfile.TemporaryDirectory() as folder:
        if asked.what in (None, "pool", "load"):
            eight_ranks(folder, asked.events)
            print(f"\nA rank has {asked.events:,} events; medians of {asked.repeats}, nothing cached.\n")
        if asked.what in (None, "pool"):
            pool(folder, asked.repeats)
            print()
        if asked.what in (None, "load"):
            load(folder, asked.repeats)
            print()
    if asked.what in (None, "memory"):
        memory(64, 50_000, 2.0)


if __name__ == "__main__":
    main()
