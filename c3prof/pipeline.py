"""Paths → Report: find the inputs, analyze them file by file, put the ranks together.

One file's events are in memory at a time; what stays of it is its Part, which is small. A file that cannot be read is a
warning as long as another one can.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from c3prof.analysis import Part, combine, rank_part
from c3prof.analysis.contention import baseline_samples
from c3prof.analysis.settings import Settings
from c3prof.errors import DataWarning, UnreadableInput, WrongSettings
from c3prof.readers import loaded
from c3prof.readers.cache import Cache, key
from c3prof.readers.kineto import with_rank
from c3prof.readers.sources import Source, found
from c3prof.readers.windows import one_rank
from c3prof.table import Report, Table
from c3prof.trace import Trace

Progress = Callable[[int, int, str], None]
"""Called with the bytes that were just read, the bytes of all inputs, and the name of the input."""


def report(paths: list[str], asked: Mapping[str, Any], progress: Progress | None = None) -> Report:
    """The report on all that the paths lead to, with what was asked for (c3prof.config).

    UnreadableInput when nothing usable is found; WrongSettings when the settings fit nothing (rules, steps).
    """
    settings = settings_of(asked)
    inputs = found(paths)
    total = sum(source.size for source in inputs.sources)
    given = baseline_of(asked, settings)
    parts: list[Part] = []
    failures: list[UnreadableInput] = []
    warnings: list[DataWarning] = []
    for place, source in enumerate(inputs.sources):
        tick = partial(_tick, progress, total, source.name) if progress else None
        try:
            parts.append(rank_part(trace(source, place, asked, tick), settings, given))
        except UnreadableInput as error:
            failures.append(error)
            warnings.append(DataWarning("unreadable", str(error), path=source.name))
    if not parts:
        raise failures[0]
    made = combine(parts, settings)
    return replace(made, warnings=(*made.warnings, *warnings, *inputs.warnings), settings=_said(settings, asked))


def baseline_of(asked: Mapping[str, Any], settings: Settings) -> Mapping[str, Table]:
    """The clean samples of the second trace that was asked for, as a table to give to every rank; none without."""
    if not asked.get("baseline"):
        return {}
    samples = baseline_samples(traces([asked["baseline"]], asked), replace(settings, steps=None))
    return {samples.schema.name: samples}


def traces(paths: list[str], asked: Mapping[str, Any], progress: Progress | None = None) -> Iterator[Trace]:
    """The Trace of each input that the paths lead to, one after another; UnreadableInput for one that is not usable."""
    sources = found(paths).sources
    total = sum(source.size for source in sources)
    for place, source in enumerate(sources):
        yield trace(source, place, asked, partial(_tick, progress, total, source.name) if progress else None)


def trace(source: Source, place: int, asked: Mapping[str, Any], progress: Callable[[int], None] | None = None) -> Trace:
    """The Trace of one input, from the cache when it is there; `place` numbers the ranks that no file names."""
    if source.windows:
        return one_rank([trace(window, place, asked, progress) for window in source.windows])
    cache, name = _cache(asked), ""
    if cache is not None and (name := key(source.path, source.name, asked.get("rules")) or ""):
        kept = cache.trace(name)
        if kept is not None:
            if progress is not None:
                progress(source.size)
            return with_rank(kept, -1 - place) if kept.rank_numbers[0] < 0 else kept
    read = loaded(source, place, rules=asked.get("rules"), progress=progress)
    if cache is not None and name:
        cache.keep(name, read)
    return read


def settings_of(asked: Mapping[str, Any]) -> Settings:
    """What the analyses are asked, out of all that the user asked."""
    rules = asked.get("rules")
    if rules and not Path(rules).is_file():
        raise WrongSettings(f"--rules {rules}: no such file")
    return Settings(**{name: asked[name] for name in ("only", "steps", "top", "seed") if name in asked})


def _cache(asked: Mapping[str, Any]) -> Cache | None:
    if not asked.get("cache", True):
        return None
    folder = asked.get("cache_dir")
    return Cache(Path(folder).expanduser() if folder else None, asked.get("cache_gb", 10.0) * 1e9)


def _said(settings: Settings, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that bear on the numbers, for the report."""
    files = {name: asked.get(name) for name in ("rules", "baseline")}
    return {**asdict(settings), **files}


def _tick(progress: Progress, total: int, name: str, read: int) -> None:
    progress(read, total, name)
