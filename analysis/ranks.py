"""Everything that needs all ranks: one join, then the tables that rest on it."""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from c3prof.analysis.bandwidth import BANDWIDTH_FIT, bandwidth_fit
from c3prof.analysis.bucket_plans import BUCKET_PLANS, bucket_plans
from c3prof.analysis.clock import CLOCKS
from c3prof.analysis.collectives import COLLECTIVES, ledger
from c3prof.analysis.collectives_by_kind import COLLECTIVES_BY_KIND, collectives_by_kind
from c3prof.analysis.groups import PROCESS_GROUPS, process_groups
from c3prof.analysis.joined import joined
from c3prof.analysis.settings import Settings
from c3prof.analysis.stragglers import STRAGGLERS, STRAGGLERS_BY_STEP, WAITS_BY_RANK, stragglers
from c3prof.analysis.waits import NOTES, waits
from c3prof.errors import DataWarning
from c3prof.table import Table
from c3prof.trace import Trace

SCHEMAS = (
    COLLECTIVES,
    COLLECTIVES_BY_KIND,
    STRAGGLERS,
    STRAGGLERS_BY_STEP,
    WAITS_BY_RANK,
    BANDWIDTH_FIT,
    BUCKET_PLANS,
    PROCESS_GROUPS,
    CLOCKS,
)

NEEDS = ("_collective_overlap",)
"""Hidden and exposed time of each collective, a row a row of Trace.collectives; taken where it is there."""


def across_ranks(trace: Trace, tables: Mapping[str, Table], settings: Settings) -> tuple[Table, ...]:
    """The tables of SCHEMAS, in that order, of a summary Trace."""
    run = joined(trace, settings.steps)
    split = waits(run)
    groups = process_groups(run, dict(settings.groups))
    collectives = ledger(run, split, groups, *_overlap(tables, len(trace.collectives)))
    fit = bandwidth_fit(run, split, groups)
    return (
        collectives,
        collectives_by_kind(run, split, groups, collectives),
        *stragglers(run, split),
        fit,
        bucket_plans(run, split, groups, fit),
        groups,
        run.clocks,
    )


def coverage(tables: Mapping[str, Table]) -> dict[str, int]:
    """What the numbers about ranks rest on (docs/metrics.md §6); empty without their tables."""
    if "process_groups" not in tables:
        return {}
    groups, ledger, clock = (tables[name].frame for name in ("process_groups", "collectives", "clocks"))
    contradicting = ledger["note"].cat.categories[ledger["note"].cat.categories.str.contains(NOTES["negative"], regex=False)]
    bound = clock["bound_ns"].max()
    return {
        "collectives_matched": int(groups["records"].sum() - groups["unmatched"].sum()),
        "collectives_unmatched": int(groups["unmatched"].sum()),
        "collectives_contradicting_kind": int(ledger["note"].isin(contradicting).sum()),
        "ranks_without_common_clock": int(clock["offset_ns"].isna().sum()),
        **({} if len(clock) < 2 or math.isnan(bound) else {"clock_bound_ns": math.ceil(bound)}),
    }


def warnings(tables: Mapping[str, Table]) -> list[DataWarning]:
    """What a reader of the numbers about ranks should know; nothing without their tables."""
    found = coverage(tables)
    lost, torn = (found.get(name, 0) for name in ("ranks_without_common_clock", "collectives_contradicting_kind"))
    made = []
    if lost:
        message = (
            f"{lost} ranks share no synchronizing collective with another: waits and transfers on them are null, bandwidths lower bounds"
        )
        made.append(DataWarning("no-common-clock", message, lost))
    if torn:
        made.append(
            DataWarning(
                "contradicting-ends", f"{torn} communication records end in a way that their kind does not allow; their wait is null", torn
            )
        )
    return made


def _overlap(tables: Mapping[str, Table], n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """hidden_ns and exposed_ns of each record, NaN where nothing of it ran on the device or nobody computed them."""
    table = tables.get(NEEDS[0])
    if table is None or len(table) != n:
        return np.full(n, np.nan), np.full(n, np.nan)
    seen = table.frame["comm_ns"].to_numpy() > 0
    hidden, exposed = (np.where(seen, table.frame[c].to_numpy(), np.nan) for c in ("hidden_ns", "exposed_ns"))
    return hidden, exposed
