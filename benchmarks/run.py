"""Runs the benchmarks, each a script of its own, and writes docs/benchmarks.md.

    python benchmarks/run.py [name …]     # load_and_overlap, ranks, …; all without a name

A script prints a Markdown section, or plain lines under the first line of its docstring. A section that is not run
again keeps its last result.
"""

import ast
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
SCRIPTS = ("load_and_overlap", "coverage", "ranks", "overhead", "dashboard")
PACKAGES = ("c3prof", "numpy", "pandas", "pyarrow", "msgspec", "isal", "torch", "dash")

HEAD = """# Benchmarks

`make bench` writes this page. Every comparison is one run on one machine, the tools in turn on the same file; medians.
Losing results stay in. Quote the ratios: the seconds are this machine's.
"""


def machine() -> str:
    """The machine and the versions, one line each."""
    cpu = next((line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    memory = next((int(line.split()[1]) / 1e6 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return f"{os.cpu_count()} cores of {cpu or 'unknown'}, {memory:.0f} GB, Python {platform.python_version()}, " + ", ".join(_versions())


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines() if Path(path).exists() else []


def _versions() -> list[str]:
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return found


def sections() -> dict[str, str]:
    """The sections that the page holds now, by script."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return {name: body.strip() for name, body in re.findall(r"<!-- (\w+) -->\n(.*?)\n<!-- end -->", text, re.DOTALL)}


def measured(name: str) -> str:
    """The section that a script prints, with the machine it ran on."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / f"{name}.py")], capture_output=True, text=True, check=False, cwd=ROOT, env=environment
    )
    if done.returncode:
        raise SystemExit(f"benchmarks/{name}.py failed:\n{done.stderr}")
    printed = done.stdout.strip()
    if not printed.startswith("## "):
        printed = f"## {_title(name)}\n\n```\n{printed}\n```"
    return f"{printed}\n\nOn {machine()}."


def _title(name: str) -> str:
    docstring = ast.get_docstring(ast.parse((ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8"))) or name
    return docstring.partition("\n")[0]


def main(names: list[str]) -> None:
    page = sections()
    for name in names or SCRIPTS:
        print(f"benchmarks/{name}.py …", flush=True)
        page[name] = measured(name)
        body = "\n\n".join(f"<!-- {known} -->\n{page[known]}\n<!-- end -->" for known in SCRIPTS if known in page)
        PAGE.write_text(f"{HEAD}\n{body}\n", encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
