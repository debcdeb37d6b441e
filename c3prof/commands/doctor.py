"""c3prof doctor: what is in the input, what is wrong with it, what can be trusted; and what runs here."""

from typing import Annotated, Any

import typer

from c3prof.commands import options
from c3prof.config import config
from c3prof.errors import DataWarning, UnreadableInput


def doctor(
    paths: options.Paths = None,
    *,
    format_: options.Format = None,
    out: options.Out = None,
    rules: options.Rules = None,
    quiet: options.Quiet = None,
    itself: Annotated[bool, typer.Option("--self", help="What is installed here, instead of an input.")] = False,
) -> None:
    """What is in the input, what is wrong with it, and what can be trusted. Exit 1 if nothing can."""
    if itself:
        print("\n".join(_installed()))
        return
    from c3prof.analysis.trust import usable
    from c3prof.commands.analyze import given
    from c3prof.commands.output import put

    asked = config({"format": format_, "rules": rules, "quiet": quiet})
    report = _examined(given(paths, None, out), asked)
    put(report, asked, out)
    if not usable(report["trust"]):
        raise typer.Exit(1)


def _examined(paths: list[str], asked: Any) -> Any:
    """The report with the tables contents and trust; files are read one after another."""
    import pandas as pd

    from c3prof.analysis.trust import CONTENTS, contents, trust
    from c3prof.commands.output import progress
    from c3prof.pipeline import trace
    from c3prof.readers.sources import found
    from c3prof.run import selection
    from c3prof.table import Report, Table

    inputs = found(paths)
    summaries, rows, failures, warnings = [], [], [], list(inputs.warnings)
    total = sum(source.size for source in inputs.sources)
    with progress(quiet=asked["quiet"]) as tick:
        for place, source in enumerate(inputs.sources):
            moved = (lambda read, name=source.name: tick(read, total, name)) if tick else None
            try:
                one = trace(source, place, asked, moved)
            except UnreadableInput as error:
                failures.append(error)
                warnings.append(DataWarning("unreadable", str(error), path=source.name))
                continue
            rows.append(contents(one).frame)
            summaries.append(one.summary())
            warnings += one.warnings
    if not rows:
        raise failures[0]
    warnings += selection(summaries)[1]
    files = pd.concat(rows, ignore_index=True)
    tables = {"contents": Table.of(CONTENTS, files), "trust": trust(files, warnings)}
    return Report(tables=tables, warnings=tuple(warnings), inputs=tuple(files["source"]), settings={"rules": asked["rules"]})


_NEEDED = ("numpy", "pandas", "pyarrow", "msgspec", "isal", "fsspec", "rich", "typer", "plotly")
_EXTRAS = {
    "collect": ("torch", "nvidia-ml-py"),
    "app": ("dash", "dash-ag-grid"),
    "hta": ("HolisticTraceAnalysis",),
    "cluster": ("dask", "distributed"),
    "s3": ("s3fs",),
}


def _installed() -> list[str]:
    """One line a package: its version, or what installs it."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from c3prof import __version__
    from c3prof.readers.cache import default_folder
    from c3prof.readers.scan import scanner_name

    def line(package: str, extra: str = "") -> str:
        try:
            return f"{package:<24}{version(package)}"
        except PackageNotFoundError:
            return f"{package:<24}not installed" + (f": pip install 'c3prof[{extra}]'" if extra else ", but needed")

    about = [f"{'c3prof':<24}{__version__}", f"{'python':<24}{platform.python_version()} ({platform.system()} {platform.machine()})"]
    about += [f"{'scan of traces':<24}{scanner_name()}", f"{'cache':<24}{default_folder()}"]
    return [*about, *map(line, _NEEDED), *(line(package, extra) for extra, packages in _EXTRAS.items() for package in packages)]
