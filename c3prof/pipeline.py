"""Paths → Report: find the inputs, analyze them file by file, put the ranks together.

A process holds one file's events at a time; what stays of it is its Part, which is small. A file that cannot be read is
a warning as long as another one can.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from c3prof.analysis import Part, combine, rank_part
from c3prof.analysis.contention import baseline_samples
from c3prof.analysis.groups import DIMENSIONS
from c3prof.analysis.settings import Settings
from c3prof.config import toml
from c3prof.errors import C3profError, DataWarning, UnreadableInput, WrongSettings
from c3prof.kernels import rules as rules_of
from c3prof.readers import loaded
from c3prof.readers.cache import Cache, key
from c3prof.readers.kineto import with_rank
from c3prof.readers.sources import Source, found
from c3prof.readers.windows import one_rank
from c3prof.table import Report, Table
from c3prof.tasks import WORTH_WORKERS, Place, Task, completed, text_bytes
from c3prof.trace import Trace

Progress = Callable[[int, int, str], None]
"""Called with the bytes that were just read, the bytes of all inputs, and the name of the input."""


def report(paths: list[str], asked: Mapping[str, Any], progress: Progress | None = None) -> Report:
    """The report on all that the paths lead to, with what was asked for (c3prof.config).

    UnreadableInput when nothing usable is found; WrongSettings when the settings fit nothing (rules, steps).
    """
    settings = settings_of(asked)
    inputs = found(paths)
    results = _results(inputs.sources, asked, settings, progress)
    parts = [result for result in results if isinstance(result, Part)]
    failures = [(source.name, result) for source, result in zip(inputs.sources, results, strict=True) if isinstance(result, C3profError)]
    if not parts:
        raise failures[0][1]
    warnings = [DataWarning("unreadable", str(error), path=name) for name, error in failures]
    made = combine(parts, settings)
    return replace(made, warnings=(*made.warnings, *warnings, *inputs.warnings), settings=_said(settings, asked))


def _results(
    sources: Sequence[Source], asked: Mapping[str, Any], settings: Settings, progress: Progress | None
) -> list[Part | C3profError]:
    """What each input gives, in their order: here one after another, or in other processes where that pays."""
    total = sum(source.size for source in sources)
    place = _place(sources, asked)
    part = partial(_part, asked=dict(asked), settings=settings, given=baseline_of(asked, settings))
    if place is None:
        ticks = [partial(_tick, progress, total, source.name) if progress else None for source in sources]
        alone = len(sources) == 1
        return [part((source, at), tick=tick, alone=alone) for at, (source, tick) in enumerate(zip(sources, ticks, strict=True))]
    tasks = [Task((source, at), _need(source), source.name) for at, source in enumerate(sources)]
    results: dict[int, Part | C3profError] = {}
    for at, result in completed(part, tasks, place):
        results[at] = result
        if progress:
            progress(sources[at].size, total, sources[at].name)
    return [results[at] for at in range(len(sources))]


def _part(
    job: tuple[Source, int],
    asked: Mapping[str, Any],
    settings: Settings,
    given: Mapping[str, Table],
    tick: Callable[[int], None] | None = None,
    *,
    alone: bool = False,
) -> Part | UnreadableInput:
    """One task: what one input gives, or why it gives nothing. alone: it is the only one, so that a core is free."""
    try:
        return rank_part(trace(*job, asked, tick, ahead=alone), settings, given)
    except UnreadableInput as error:
        return error


def _place(sources: Sequence[Source], asked: Mapping[str, Any]) -> Place | None:
    """Where the inputs are read; None for this process: one input, one worker, or too little to pay for starting others."""
    memory = int(asked.get("memory_gb", 0) * 1e9)
    place = Place(asked.get("workers", 0), memory, asked.get("scheduler") or "", asked.get("cluster") or "")
    small = not asked.get("workers") and sum(text_bytes(source.path, source.size) for source in sources) < WORTH_WORKERS
    if place.on_dask:
        return place
    return None if len(sources) < 2 or place.processes < 2 or small else place


def _need(source: Source) -> int:
    """Bytes that reading and analyzing an input takes at its peak: up to three times its JSON (benchmarks/ranks.py), and the program."""
    return 3 * text_bytes(source.path, source.size) + 150_000_000


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


def trace(
    source: Source, place: int, asked: Mapping[str, Any], progress: Callable[[int], None] | None = None, *, ahead: bool = False
) -> Trace:
    """The Trace of one input, from the cache when it is there; `place` numbers the ranks that no file names.

    ahead: as in readers.loaded.
    """
    if source.windows:
        return one_rank([trace(window, place, asked, progress, ahead=ahead) for window in source.windows])
    rules_of(asked.get("rules"))  # refused before they become part of a key
    cache, name = _cache(asked), ""
    if cache is not None and (name := key(source.path, source.name, asked.get("rules")) or ""):
        kept = cache.trace(name)
        if kept is not None:
            if progress is not None:
                progress(source.size)
            return with_rank(kept, -1 - place) if kept.rank_numbers[0] < 0 else kept
    read = loaded(source, place, rules=asked.get("rules"), progress=progress, ahead=ahead)
    if cache is not None and name:
        cache.keep(name, read)
    return read


def settings_of(asked: Mapping[str, Any]) -> Settings:
    """What the analyses are asked, out of all that the user asked."""
    rules = asked.get("rules")
    if rules and not Path(rules).is_file():
        raise WrongSettings(f"--rules {rules}: no such file")
    plain = {name: asked[name] for name in ("only", "steps", "top", "seed") if name in asked}
    return Settings(**plain, groups=_groups(asked.get("groups")))


def _groups(path: str | None) -> tuple[tuple[str, str], ...]:
    """Dimensions of process groups from the user's file."""
    if not path:
        return ()
    said = toml(Path(path))
    wrong = [f"{name} = {value!r}" for name, value in said.items() if value not in DIMENSIONS]
    if wrong:
        raise WrongSettings(f'--groups {path}: {", ".join(wrong)}; expected lines like mesh_tp = "tp", one of {", ".join(DIMENSIONS)}')
    return tuple(sorted(said.items()))


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
