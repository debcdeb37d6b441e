"""Everything that needs all ranks: one join, then the tables that rest on it."""

from collections.abc import Mapping

import numpy as np

from c3prof.analysis.bandwidth import bandwidth_fit
from c3prof.analysis.bucket_plans import bucket_plans
from c3prof.analysis.collectives import ledger
from c3prof.analysis.collectives_by_kind import collectives_by_kind
from c3prof.analysis.groups import process_groups
from c3prof.analysis.joined import joined
from c3prof.analysis.settings import Settings
from c3prof.analysis.stragglers import stragglers
from c3prof.analysis.waits import waits
from c3prof.table import Table
from c3prof.trace import Trace


def across_ranks(trace: Trace, tables: Mapping[str, Table], settings: Settings) -> tuple[Table, ...]:
    """The tables of SCHEMAS, in that order, of a summary Trace."""
    del tables, settings
    run = joined(trace)
    split = waits(run)
    groups = process_groups(run)
    unknown = np.full(len(trace.collectives), np.nan)
    collectives = ledger(run, split, groups, unknown, unknown)
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
