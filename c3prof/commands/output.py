"""Where a report goes: stdout, a file or a folder; and the progress bar. Wrong names are refused before anything is read."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

from c3prof.config import Config
from c3prof.errors import WrongSettings
from c3prof.table import Report

STDOUT = "-"
"""The name that stands for stdout."""

Tick = Callable[[int, int, str], None]
"""Called with the bytes just read, the bytes in all, and the name of what is being read."""


def check(asked: Config) -> None:
    """WrongSettings for a table or a --by that does not exist."""
    from c3prof.analysis import schemas
    from c3prof.renderers.views import BY

    tables = [schema.name for schema in schemas()]
    unknown = [name for name in asked["only"] if name not in tables]
    if unknown:
        raise WrongSettings(f"--only {','.join(unknown)}: no such table; there are {', '.join(tables)}")
    if asked["by"] and asked["by"] not in BY:
        raise WrongSettings(f"--by {asked['by']}: expected one of {', '.join(BY)}")


def check_out(asked: Config, out: str | None) -> None:
    """WrongSettings for an `out` that the format cannot be written to; asked before hours of reading, too."""
    if out is None or out == STDOUT:
        return
    if asked["format"] != "csv":
        check_file("-o", out, asked["format"])
    elif Path(out).exists() and not Path(out).is_dir():
        raise WrongSettings(f"-o {out}: this is a file; csv goes to a folder, one file a table")


def check_file(option: str, out: str, what: str) -> None:
    """WrongSettings for a name that no file can have: a folder, or in a folder that does not exist."""
    if Path(out).is_dir():
        raise WrongSettings(f"{option} {out}: this is a folder; {what} goes to one file")
    if not Path(out).absolute().parent.is_dir():
        raise WrongSettings(f"{option} {out}: there is no folder {Path(out).parent}")


def put(report: Report, asked: Config, out: str | None, views: Sequence[Any] = ()) -> None:
    """Write the report in the format asked for, to stdout (None, -) or to `out`, which holds all of it or is not touched.

    views: the sections of the text page, () for the usual ones.
    """
    check_out(asked, out)
    out = None if out == STDOUT else out
    if asked["format"] == "csv":
        _put_csv(report, out)
    elif out is None:
        _write(report, asked, sys.stdout, views)
        sys.stdout.flush()
    else:
        with whole_file(Path(out)) as file:
            text = TextIOWrapper(file, "utf-8")
            try:
                _write(report, asked, text, views)
            finally:
                text.detach()  # flushed; whole_file closes the file
    if out is not None and not asked["quiet"] and sys.stderr.isatty():
        print(f"wrote {out}", file=sys.stderr)


def _write(report: Report, asked: Config, file: IO[str], views: Sequence[Any]) -> None:
    if asked["format"] == "json":
        from c3prof.renderers import json

        file.writelines(part.decode() for part in json.parts(report))
    elif asked["format"] == "html":
        from c3prof.renderers import html

        file.write(html.text(report))
    else:
        from c3prof.renderers import terminal

        terminal.write(report, file, by=asked["by"], top=asked["top"], views=views)


def _put_csv(report: Report, out: str | None) -> None:
    from c3prof.renderers import csv

    if out is not None:
        csv.write(report, Path(out))
    elif len(report) == 1:
        sys.stdout.write(csv.text(next(iter(report.values()))))
    else:
        raise WrongSettings("--format csv writes one file a table: give -o FOLDER, or --only with one table for stdout")


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that gets the name when all is written, and nothing of which stays when that fails."""
    if path.exists() and not path.is_file():  # /dev/stdout, a pipe
        with path.open("wb") as file:
            yield file
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def progress(*, quiet: bool) -> Iterator[Tick | None]:
    """A function that moves a bar on stderr; None when nobody looks (no terminal, or quiet)."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("reading", total=None)
        yield lambda read, total, name: bars.update(task, advance=read, total=total, description=name[-40:])
