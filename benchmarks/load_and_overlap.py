"""Load + overlap against HolisticTraceAnalysis 0.5.0 on the same files in one run, and whole analyses of large files.

    python benchmarks/load_and_overlap.py [--traces FOLDER] [--repeat 3]

HTA runs in an environment of its own (.venv-hta, made here). Tools take turns; medians are quoted. Nothing is cached.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.generate import write
from benchmarks.processes import Run, run

ROOT = Path(__file__).resolve().parents[1]
HTA = ROOT / ".venv-hta" / "bin" / "python"


def hta_environment() -> Path:
    """The Python of an environment with HTA 0.5.0, made on first use."""
    if not HTA.exists():
        run([sys.executable, "-m", "venv", str(HTA.parents[1])])
        run([str(HTA), "-m", "pip", "install", "--quiet", "HolisticTraceAnalysis==0.5.0"])
    return HTA


def compared(path: Path, rank: int, repeat: int) -> tuple[list[Run], list[Run]]:
    """Runs of both tools on a file, in turn."""
    ours, theirs = [], []
    for _ in range(repeat):
        ours.append(run([sys.executable, str(ROOT / "benchmarks" / "load_overlap.py"), str(path)], PYTHONPATH=str(ROOT)))
        theirs.append(run([str(hta_environment()), str(ROOT / "benchmarks" / "load_overlap_hta.py"), str(path), str(rank)]))
    return ours, theirs


def seconds(runs: list[Run]) -> float:
    """Median of load + overlap inside the process: imports are left out for both tools."""
    return statistics.median(r.printed["load_s"] + r.printed["overlap_s"] for r in runs)


def section(traces: Path | None, repeat: int) -> str:
    """The measurements as a Markdown section."""
    with tempfile.TemporaryDirectory() as folder:
        files = [("generated, 1 million events", Path(folder) / "1m.json.gz", 0, 1_000_000)]
        write(files[0][1], 1_000_000)
        real = traces / "a100_ddp_rank3of8.json.gz" if traces else None
        if real and real.exists():
            files.insert(0, ("a100_ddp_rank3of8 (109 thousand events)", real, 3, 0))
        lines = [
            "| file | c3prof load + overlap | HTA 0.5.0 | ratio | gunzip alone | load / gunzip | peak c3prof | peak HTA | share |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for title, path, rank, _ in files:
            ours, theirs = compared(path, rank, repeat)
            gunzip = statistics.median(r.printed["gunzip_s"] for r in ours)
            load = statistics.median(r.printed["load_s"] for r in ours)
            mine, peak = seconds(ours), statistics.median(r.peak_mb for r in ours)
            other, other_peak = seconds(theirs), statistics.median(r.peak_mb for r in theirs)
            lines.append(
                f"| {title} | {mine:.2f} s | {other:.2f} s | {other / mine:.1f} × | {gunzip:.2f} s | {load / gunzip:.1f} × "
                f"| {peak:.0f} MB | {other_peak:.0f} MB | {peak / other_peak:.0%} |"
            )
        lines += [
            "",
            "Whole process `c3prof analyze FILE --no-cache`, every default table:",
            "",
            "| events | wall | CPU | peak memory |",
            "|---|---|---|---|",
        ]
        for count in (1_000_000, 5_000_000):
            path = Path(folder) / f"{count}.json.gz"
            write(path, count)
            runs = [
                run([sys.executable, "-m", "c3prof.cli", "analyze", str(path), "--no-cache"], PYTHONPATH=str(ROOT)) for _ in range(repeat)
            ]
            wall, cpu, peak = (statistics.median(getattr(r, name) for r in runs) for name in ("wall_s", "cpu_s", "peak_mb"))
            lines.append(f"| {count:,} | {wall:.1f} s | {cpu:.1f} s | {peak / 1000:.2f} GB |")
    return "## Load and overlap\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, default=ROOT.parent / "shared" / "traces")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    print(section(arguments.traces, arguments.repeat))
