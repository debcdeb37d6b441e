"""Load + overlap against HolisticTraceAnalysis 0.5.0 on the same files in one run, and whole analyses of large files.

    python benchmarks/load_and_overlap.py [--traces FOLDER] [--repeat 5]

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


def compared(path: Path, rank: int, repeat: int) -> dict[str, list[Run]]:
    """Runs of each tool on a file, in turn: c3prof with its native and with its Python scan, and HTA."""
    ours = [sys.executable, str(ROOT / "benchmarks" / "load_overlap.py"), str(path)]
    theirs = [str(hta_environment()), str(ROOT / "benchmarks" / "load_overlap_hta.py"), str(path), str(rank)]
    runs: dict[str, list[Run]] = {"native": [], "python": [], "HTA 0.5.0": []}
    for _ in range(repeat):
        runs["native"].append(run(ours, PYTHONPATH=str(ROOT)))
        runs["python"].append(run(ours, PYTHONPATH=str(ROOT), C3PROF_SCAN="python"))
        runs["HTA 0.5.0"].append(run(theirs))
    if {r.printed["scan"] for r in runs["native"]} != {"native"}:
        raise SystemExit("the native scan is not built here: pip install -e . with a compiler, then again")
    return runs


def seconds(runs: list[Run]) -> float:
    """Median of load + overlap inside the process: imports are left out for both tools."""
    return statistics.median(r.printed["load_s"] + r.printed["overlap_s"] for r in runs)


def section(traces: Path | None, repeat: int) -> str:
    """The measurements as a Markdown section."""
    with tempfile.TemporaryDirectory() as folder:
        files = [("generated, 1 million events", Path(folder) / "1m.json.gz", 0)]
        write(files[0][1], 1_000_000)
        real = traces / "a100_ddp_rank3of8.json.gz" if traces else None
        if real and real.exists():
            files.insert(0, ("a100_ddp_rank3of8 (109 thousand events)", real, 3))
        lines = ["| file | tool | load + overlap | HTA / this | peak memory | of HTA's |", "|---|---|---|---|---|---|"]
        alone = ["", "| file | load | zlib alone | load / zlib | isal alone | load / isal |", "|---|---|---|---|---|---|"]
        for title, path, rank in files:
            runs = compared(path, rank, repeat)
            other, other_peak = seconds(runs["HTA 0.5.0"]), statistics.median(r.peak_mb for r in runs["HTA 0.5.0"])
            for tool, of_tool in runs.items():
                name = tool if tool.startswith("HTA") else f"c3prof, {tool} scan"
                mine, peak = seconds(of_tool), statistics.median(r.peak_mb for r in of_tool)
                lines.append(f"| {title} | {name} | {mine:.2f} s | {other / mine:.1f} × | {peak:.0f} MB | {peak / other_peak:.0%} |")
            load, gunzip, isal = (statistics.median(r.printed[name] for r in runs["native"]) for name in ("load_s", "gunzip_s", "isal_s"))
            alone.append(f"| {title} | {load:.2f} s | {gunzip:.2f} s | {load / gunzip:.1f} × | {isal:.3f} s | {load / isal:.1f} × |")
        lines += [
            *alone,
            "",
            "Whole process `c3prof analyze FILE --no-cache`, every default table:",
            "",
            "| events | wall | CPU | peak memory |",
            "|---|---|---|---|",
        ]
        for count in (1_000_000, 5_000_000):
            path = Path(folder) / f"{count}.json.gz"
            write(path, count)
            commands = [
                run([sys.executable, "-m", "c3prof.cli", "analyze", str(path), "--no-cache"], PYTHONPATH=str(ROOT)) for _ in range(repeat)
            ]
            wall, cpu, peak = (statistics.median(getattr(r, name) for r in commands) for name in ("wall_s", "cpu_s", "peak_mb"))
            lines.append(f"| {count:,} | {wall:.1f} s | {cpu:.1f} s | {peak / 1000:.2f} GB |")
    return "## Load and overlap\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, default=ROOT.parent / "shared" / "traces")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    print(section(arguments.traces, arguments.repeat))
