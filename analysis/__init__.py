"""Trace → Report, pure: no file is read or written, nothing is drawn.

A new analysis is one file here and one entry in ANALYSES; terminal, JSON, CSV, HTML, the app and docs/columns.md
follow from the schemas. An analysis of scope "rank" sees the Trace of one rank and may look at every activity; its
rows are put under each other. One of scope "run" sees all ranks, but only their summary (Trace.summary: collectives,
steps, ranks, groups; no activities) and the tables of the rank analyses, so that memory does not grow with the events
of all ranks and the ranks can be computed anywhere. A table whose name begins with _ passes from the one to the other
and is not shown.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from c3prof.analysis import causes, contention, contention_of_run, ranks
from c3prof.analysis.calibration import CALIBRATION, calibration
from c3prof.analysis.exposed import SCHEMAS as EXPOSED
from c3prof.analysis.exposed import exposed
from c3prof.analysis.footprint import FOOTPRINT, footprint
from c3prof.analysis.idle import IDLE, idle
from c3prof.analysis.kernel_time import KERNELS, kernel_time
from c3prof.analysis.nccl import NCCL_CHOICES, nccl_choices
from c3prof.analysis.overlap import SCHEMAS as OVERLAP
from c3prof.analysis.overlap import overlap
from c3prof.analysis.overlap_subsets import SCHEMAS as OVERLAP_SUBSETS
from c3prof.analysis.overlap_subsets import overlap_subsets
from c3prof.analysis.power import POWER, power
from c3prof.analysis.recorded import OVERHEAD, STEP_TIMES, WAITS, overhead, step_times, waits
from c3prof.analysis.settings import Settings
from c3prof.errors import WrongSettings
from c3prof.run import selection
from c3prof.table import Report, Schema, Table
from c3prof.trace import Trace

Tables = Mapping[str, Table]


@dataclass(frozen=True)
class Analysis:
    """One computation and the tables it gives.

    compute(trace, tables, settings) -> the tables named in `schemas`, in that order. `tables` holds what the
    analyses before it in ANALYSES gave (for the same rank, or for the run); `needs` names those it reads.
    """

    schemas: tuple[Schema, ...]
    compute: Callable[[Trace, Tables, Settings], tuple[Table, ...]]
    scope: Literal["rank", "run"] = "rank"
    needs: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(schema.name for schema in self.schemas)


@dataclass(frozen=True)
class Part:
    """What one rank contributes: its summary Trace and the tables of the rank analyses. Small, and picklable."""

    summary: Trace
    tables: Tables


ANALYSES: tuple[Analysis, ...] = (
    Analysis(OVERLAP, overlap),
    Analysis(OVERLAP_SUBSETS, overlap_subsets),
    Analysis(EXPOSED, exposed),
    Analysis((KERNELS,), kernel_time),
    Analysis((IDLE,), idle),
    Analysis((STEP_TIMES,), step_times),
    Analysis((WAITS,), waits),
    Analysis((OVERHEAD,), overhead),
    Analysis(contention.SCHEMAS, contention.contention),
    Analysis((FOOTPRINT,), footprint),
    Analysis((NCCL_CHOICES,), nccl_choices),
    Analysis((POWER,), power),
    Analysis((CALIBRATION,), calibration, scope="run"),
    Analysis(ranks.SCHEMAS, ranks.across_ranks, scope="run", needs=ranks.NEEDS),
    Analysis(contention_of_run.SCHEMAS, contention_of_run.contention_of_run, scope="run", needs=contention_of_run.NEEDS),
    Analysis(causes.SCHEMAS, causes.causes, scope="run", needs=causes.NEEDS),
)


def schemas() -> list[Schema]:
    """The schemas of the tables that a report may show, in order; names with _ are between analyses only."""
    return list({schema.name: schema for analysis in ANALYSES for schema in analysis.schemas if not schema.name.startswith("_")}.values())


def analyze(trace: Trace, settings: Settings | None = None) -> Report:
    """The report of a Trace: every table of ANALYSES that the settings ask for.

    WrongSettings when `settings.only` names a table that no analysis gives.
    """
    settings = settings or Settings()
    return combine((rank_part(one, settings) for one in trace.each_rank()), settings)


def rank_part(trace: Trace, settings: Settings, given: Tables | None = None) -> Part:
    """What one rank contributes to the report. One task; tasks are independent.

    given: tables from elsewhere that an analysis may look at (`_baseline`, of contention.baseline_samples).
    """
    tables: dict[str, Table] = dict(given or {})
    for analysis in _wanted("rank", settings):
        tables |= {t.schema.name: t for t in analysis.compute(trace, tables, settings)}
    return Part(trace.summary(), tables)


def combine(parts: Iterable[Part], settings: Settings) -> Report:
    """The report of all ranks from their parts, in any order."""
    parts = sorted(parts, key=lambda part: (part.summary.rank_numbers, tuple(part.summary.ranks["path"])))
    positions, warnings = selection([part.summary for part in parts])
    parts = [parts[at] for at in positions]
    summary = Trace.concat([part.summary for part in parts]).with_warnings(warnings)
    tables = {name: _stacked([part.tables[name] for part in parts]) for name in parts[0].tables}
    for analysis in _wanted("run", settings):
        tables |= {t.schema.name: t for t in analysis.compute(summary, tables, settings)}
    shown = {name: table for name, table in tables.items() if settings.wants(name) and not name.startswith("_")}
    return Report(
        tables=shown,
        # a warning about the whole run comes with every rank of it
        warnings=tuple(dict.fromkeys((*summary.warnings, *ranks.warnings(tables)))),
        coverage=_coverage(summary) | ranks.coverage(tables) | contention.coverage(tables),
        inputs=tuple(summary.ranks["path"]),
    )


def _coverage(summary: Trace) -> dict[str, object]:
    """The counts of the readers, added up over all ranks."""
    names = list(dict.fromkeys(name for counts in summary.coverage.values() for name in counts))
    return {name: sum(counts.get(name, 0) for counts in summary.coverage.values()) for name in names}


def _wanted(scope: str, settings: Settings) -> list[Analysis]:
    """The analyses of a scope that give a table that is asked for, or one that such an analysis needs."""
    known = {name for analysis in ANALYSES for name in analysis.names}
    shown = {name for name in known if not name.startswith("_")}
    if unknown := sorted(set(settings.only) - shown):
        raise WrongSettings(f"no table is named {', '.join(unknown)}; known are {', '.join(sorted(shown))}")
    needed = set(settings.only) or known
    for analysis in reversed(ANALYSES):  # an analysis only needs what stands before it
        if needed & set(analysis.names):
            needed |= set(analysis.needs)
    return [analysis for analysis in ANALYSES if analysis.scope == scope and needed & set(analysis.names)]


def _stacked(tables: list[Table]) -> Table:
    if len(tables) == 1:
        return tables[0]
    frames = [table.frame for table in tables if len(table)] or [tables[0].frame]
    return Table.of(tables[0].schema, pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0])
