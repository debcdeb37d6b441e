"""Traces of single files → one run: which files stand for which rank, and what the set of them lacks."""

from collections.abc import Sequence

from c3prof.errors import DataWarning
from c3prof.trace import Each, Trace

_LISTED = 8


def selection(traces: Sequence[Trace]) -> tuple[list[int], list[DataWarning]]:
    """Positions of the traces (or their summaries) that make up the run, in order of rank, and warnings about the set.

    A rank that is there twice keeps its first file. Files without device activity are left out beside files that have
    some: a coordinator on CPUs is no rank of a GPU job; a rank that our collectors recorded is one.
    """
    warnings: list[DataWarning] = []
    on_device = [any(counts.get("activities", 0) for counts in trace.coverage.values()) for trace in traces]
    chosen: dict[int, int] = {}
    for at, trace in enumerate(traces):
        path = trace.ranks["path"].iloc[0]
        rank = trace.rank_numbers[0]
        if any(on_device) and not on_device[at] and not len(trace.recorded_steps):
            message = "this file has no device activity, other files do; it is not counted as a rank"
            warnings.append(DataWarning("no-device-activity", message, path=path))
        elif rank in chosen:
            first = traces[chosen[rank]].ranks["path"].iloc[0]
            warnings.append(
                DataWarning("duplicate-rank", f"rank {rank} is in {first} and again in this file, which is left out", path=path)
            )
        else:
            chosen[rank] = at
    positions = [chosen[rank] for rank in sorted(chosen)]
    return positions, [*warnings, *_incomplete([traces[at] for at in positions])]


def joined(traces: Sequence[Trace], each: Each = map) -> Trace:
    """One Trace of a run from the traces of its files; each: as Trace.concat takes it."""
    positions, warnings = selection(traces)
    run = Trace.concat([traces[at] for at in positions], each)
    return run.with_warnings(warnings)


def _incomplete(traces: Sequence[Trace]) -> list[DataWarning]:
    ranks = [rank for trace in traces for rank in trace.rank_numbers]
    known = {rank for rank in ranks if rank >= 0}
    sizes = {int(size) for trace in traces for size in trace.ranks["world_size"] if size > 0}
    warnings = []
    if len(ranks) > len(known) and len(ranks) > 1:
        warnings.append(
            DataWarning(
                "rank-unknown", "files do not say which rank they are; they are kept apart, without a number", len(ranks) - len(known)
            )
        )
    if len(sizes) > 1:
        warnings.append(DataWarning("world-size", f"the files disagree on the world size: {', '.join(map(str, sorted(sizes)))}"))
    world = max(sizes, default=0)
    missing = [rank for rank in range(min(world, 1 << 20)) if rank not in known] if known else []
    if missing:
        listed = ", ".join(map(str, missing[:_LISTED])) + (", …" if len(missing) > _LISTED else "")
        message = f"{len(missing)} of {world} ranks are missing ({listed}): waiting for them cannot be told from slow communication"
        warnings.append(DataWarning("missing-ranks", message, len(missing), bears_on_numbers=False))
    return warnings
