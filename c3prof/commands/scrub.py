"""c3prof scrub: traces that people can share."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from c3prof.commands import options
from c3prof.errors import WrongSettings


def scrub(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="IN", help="Traces: files or folders. Give all ranks of a run at once, so that hosts stay distinct."),
    ],
    *,
    out: Annotated[str, typer.Option("--out", "-o", metavar="OUT", help="File to write; a folder for several inputs.")],
    quiet: options.Quiet = None,
) -> None:
    """The same traces without hosts, users, paths and stacks; the same numbers."""
    from c3prof.readers.scrub import Pseudonyms, learned
    from c3prof.readers.sources import found

    inputs = found(paths)
    sources = [file for source in inputs.sources for file in _files(source)]
    sources += [file for folder in paths for file in _run_record(Path(folder))]
    targets = _targets([source.name for source in sources], Path(out), single=len(paths) == 1 and Path(paths[0]).is_file())
    taken = {Path(source.path).resolve() for source in sources if "://" not in source.path}
    if clash := [target for target in targets if target.resolve() in taken]:
        raise WrongSettings(f"-o {out}: {clash[0]} is an input; nothing is overwritten, give another file or folder")
    names = Pseudonyms()
    for source in sources:
        learned(_blocks(source), names)
    for source, target in zip(sources, targets, strict=True):
        _write(source, target, names)
    for skipped in () if quiet else inputs.skipped:
        print(f"not copied: {skipped.name}: {skipped.reason}", file=sys.stderr)


def _files(source: Any) -> list[Any]:
    """The files that make up an input: itself, its windows, or what a rank folder of ours holds but for stacks."""
    from c3prof.readers.sources import Source

    if source.windows:
        return [file for window in source.windows for file in _files(window)]
    if "://" in source.path or not Path(source.path).is_dir():
        return [source]
    inside = sorted(p for p in Path(source.path).iterdir() if p.is_file() and not p.name.startswith(".") and p.name != "stacks.txt")
    return [Source(str(p), f"{source.name}/{p.name}", p.stat().st_size) for p in inside]


def _run_record(folder: Path) -> list[Any]:
    """run.json of a run folder, which tells what all ranks share."""
    from c3prof.readers.sources import Source

    path = folder / "run.json"
    return [Source(str(path), "run.json", path.stat().st_size)] if path.is_file() else []


def _targets(names: list[str], out: Path, *, single: bool) -> list[Path]:
    """Where each input goes: to `out` itself for one file, else under it by its name."""
    return [out] if single and not out.is_dir() else [out / name for name in names]


def _blocks(source: Any) -> Any:
    from c3prof.readers.blocks import Blocks
    from c3prof.readers.sources import opened

    with opened(source.path) as file:
        yield from Blocks(file, source.name)


def _write(source: Any, target: Path, names: Any) -> None:
    """The scrubbed file, compressed where the input is, written aside and moved into place whole."""
    from c3prof.readers.scrub import scrubbed

    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as raw, _compressed(raw, source) as file:
            for piece in scrubbed(_blocks(source), names):
                file.write(piece)
        part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _compressed(raw: IO[bytes], source: Any) -> Any:
    """The file to write to: gzip when the input is gzip by its content. No name and no time go into it."""
    import gzip
    from contextlib import nullcontext

    from c3prof.readers.sources import opened

    with opened(source.path) as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6) if packed else nullcontext(raw)
