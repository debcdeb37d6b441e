"""Everything that needs all ranks: one join, then the tables that rest on it."""

import numpy as np

from c3prof.analysis.collectives import ledger
from c3prof.analysis.groups import process_groups
from c3prof.analysis.joined import joined
from c3prof.analysis.settings import Settings
from c3prof.analysis.waits import waits
from c3prof.table import Table
from c3prof.trace import Trace


def across_ranks(trace: Trace, tables: dict[str, Table], settings: Settings) -> tuple[Table, ...]:
    """Tables clocks, process_groups and collectives of a summary Trace."""
    run = joined(trace)
    split = waits(run)
    groups = process_groups(run)
    unknown = np.full(len(trace.collectives), np.nan)
    return run.clocks, groups, ledger(run, split, groups, unknown, unknown)
