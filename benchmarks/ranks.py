"""Scale of everything about many ranks, on generated jobs.

    python benchmarks/ranks.py [join|pool|memory]     # all three without a word

join: 64, 256 and 1,024 ranks of 2,000 collectives each, joined; seconds, GB and microseconds a record.
pool: 8 ranks of 500,000 events with 1 and 2 workers, median of 3.
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
from pathlib import Path

from c3prof.analysis.ranks import across_ranks
from c3prof.analysis.settings import Settings
from c3prof.pipeline import report
from c3prof.sample_traces.rank_files import write_rank_files
from c3prof.sample_traces.ranks import Job, simulated


def join(ranks: int) -> None:
    """Prints one line; runs in a process of its own, so that its peak memory is its own."""
    job = Job(ranks=ranks, tp=8, layers=160, steps=10, buckets=39, clock_ns=5_000_000, drift_ppm=20, window=2)
    trace = simulated(job).trace
    before = _peak_gb(os.getpid())
    began, cpu_began = time.perf_counter(), time.process_time()
    tables = across_ranks(trace, {}, Settings())
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    n = len(tables[0])
    print(
        f"{ranks:>5} ranks  {n:>9,} records  {seconds:6.1f} s  {cpu:6.1f} s of CPU  {1e6 * cpu / n:5.2f} µs of CPU a record  peak {_peak_gb(os.getpid()):.2f} GB (input {before:.2f})"
    )


def pool(events: int, repeats: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_rank_files(Job(ranks=8, tp=2, layers=8, steps=20, clock_ns=5_000_000, drift_ppm=20), Path(folder), events)
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(repeats):
            for workers, seconds in times.items():
                began = time.perf_counter()
                report([folder], {"cache": False, "workers": workers})
                seconds.append(time.perf_counter() - began)
        medians = {workers: statistics.median(seconds) for workers, seconds in times.items()}
        print(f"8 ranks x {events:,} events: 1 worker {medians[1]:.1f} s, 2 workers {medians[2]:.1f} s, {medians[1] / medians[2]:.2f} x")


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
        print(f"{ranks} ranks x {events:,} events, cap {cap_gb} GB: {seconds:.1f} s, peak of all processes {peak[0]:.2f} GB")


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
    parser.add_argument("what", choices=["join", "pool", "memory"], nargs="?")
    parser.add_argument("--ranks", type=int, help="join: only this many")
    parser.add_argument("--events", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    if asked.what == "join" and asked.ranks:
        join(asked.ranks)
    elif asked.what in (None, "join"):
        for ranks in (64, 256, 1024):
            subprocess.run([sys.executable, __file__, "join", "--ranks", str(ranks)], check=True)
    if asked.what in (None, "pool"):
        pool(asked.events or 500_000, asked.repeats)
    if asked.what in (None, "memory"):
        memory(asked.ranks or 64, asked.events or 50_000, 2.0)


if __name__ == "__main__":
    main()
