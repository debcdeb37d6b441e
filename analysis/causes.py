"""Why communication is exposed, once all ranks are known, and what a person can do about it (docs/metrics.md §2)."""

from collections.abc import Mapping

import numpy as np

from c3prof.analysis.exposed import EXPOSED, attributed
from c3prof.analysis.settings import Settings
from c3prof.table import Column, Schema, Table
from c3prof.trace import Trace

EXPOSED_CAUSES = Schema(
    "exposed_causes",
    "Exposed communication by cause over all ranks, and what would help",
    (
        Column("cause", "object", "", "why no compute ran"),
        Column("exposed_ns", "int64", "ns", "exposed communication of all ranks with that cause"),
        Column("share", "float64", "ratio", "of all exposed communication"),
        Column("ranks", "int64", "", "ranks that have some"),
        Column("collective", "object", "", "kind of collective with the most of it"),
        Column("group", "object", "", "its process group, null when not recorded"),
        Column("op", "object", "", "operator that launched it"),
        Column("advice", "object", "", "what a person can do"),
    ),
)

NEEDS = ("_exposed_pieces", "_launchers", "collectives")

ADVICE = {
    "wait": "balance the ranks: see stragglers for who comes last and why; more bandwidth does not help",
    "late-launch": "launch it earlier: the CPU issues it when the data has long been ready (prefetch, fewer host syncs, CUDA graphs)",
    "dependency": "the next compute needs its result: split or reorder the work, prefetch, smaller buckets, or more bandwidth",
    "host": "the CPU is behind: the next compute was not yet launched (CUDA graphs, compile, fewer small kernels)",
    "host-sync": "the CPU was blocked in a synchronize or wait call: remove it (.item(), .cpu(), wait) or move it later",
    "no-work": "no compute follows: start it earlier or move other work behind it (optimizer of other buckets, prefetch of data)",
    "unknown": "no launch records (graph replay, CPU activity not recorded): record CPU activities to learn the cause",
}


def causes(trace: Trace, tables: Mapping[str, Table], settings: Settings) -> tuple[Table, Table]:
    """The tables exposed, now with what each collective waited for other ranks, and exposed_causes.

    A rank waits until its own start + wait_ns, on its own clock.
    """
    del settings
    pieces, by_whom, ledger = (tables[name].frame for name in NEEDS)
    start, wait = trace.collectives["start_ns"].to_numpy(), ledger["wait_ns"].to_numpy()
    known = np.isfinite(wait)
    last_arrival = np.where(known, start + np.where(known, wait, 0).astype(np.int64), np.iinfo(np.int64).min)
    exposed = attributed(pieces, trace.collectives, by_whom, last_arrival)
    return exposed, exposed_causes(exposed)


def exposed_causes(exposed: Table) -> Table:
    """Table `exposed_causes` of a table `exposed`, a row a cause, most first."""
    rows = exposed.frame[exposed.frame["by"] == "combination"]
    rows = rows[rows["exposed_ns"] > 0]
    if not len(rows):
        return Table.of(EXPOSED_CAUSES)
    by_cause = rows.groupby("cause", sort=False).agg(exposed_ns=("exposed_ns", "sum"), ranks=("rank", "nunique")).reset_index()
    of = rows.groupby(["cause", "collective", "group", "op"], dropna=False, as_index=False)["exposed_ns"].sum()
    most = of.sort_values("exposed_ns", ascending=False, kind="stable").drop_duplicates("cause").set_index("cause")
    by_cause = by_cause.sort_values("exposed_ns", ascending=False, kind="stable", ignore_index=True)
    for name in ("collective", "group", "op"):
        column = most[name].reindex(by_cause["cause"])
        by_cause[name] = column.astype(object).where(column.notna(), None).to_numpy()
    total = int(by_cause["exposed_ns"].sum())
    made = by_cause.assign(share=by_cause["exposed_ns"] / total, advice=by_cause["cause"].map(ADVICE))
    return Table.of(EXPOSED_CAUSES, made[EXPOSED_CAUSES.names])


SCHEMAS = (EXPOSED, EXPOSED_CAUSES)
