"""The ledger rolled up by kind and process group."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.clock_fit import medians
from c3prof.analysis.estimator import MINIMUM
from c3prof.analysis.joined import Joined
from c3prof.analysis.samples import CLEAN_BELOW
from c3prof.analysis.waits import Waits
from c3prof.table import Column, Schema, Table

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

COLLECTIVES_BY_KIND = Schema(
    "collectives_by_kind",
    "Communication by kind and process group, over all ranks",
    (
        Column("collective", "object", "", "kind"),
        Column("group", "object", "", "process group"),
        Column("group_size", "object", "", "ranks in the group, null unknown"),
        Column("dimension", "object", "", "dp, tp, pp, ep, cp, world; null unknown"),
        Column("link", "object", "", "intra-node or inter-node, null unknown"),
        Column("n_operations", "int64", "", "distinct operations"),
        Column("n_records", "int64", "", "records of all ranks"),
        Column("total_bytes", "float64", "B", "sum of message sizes over operations; null when one is unknown"),
        Column("duration_ns", "float64", "ns", "sum of durations over records"),
        Column(
            "shortest_ns",
            "float64",
            "ns",
            "sum over operations of the shortest duration over ranks: needs no clock, waiting mostly left out",
        ),
        Column("n_split", "int64", "", "records whose duration splits into wait and transfer; the next four sum over these"),
        Column("wait_ns", "float64", "ns", "waiting for other ranks; null without a split record"),
        Column("transfer_ns", "float64", "ns", "moving data; wait_ns + transfer_ns = duration of the split records"),
        Column("alone_ns", "float64", "ns", "transfer as long as the same message takes with no compute beside it; null without 3 such"),
        Column("excess_ns", "float64", "ns", "transfer_ns − alone_ns: what running beside compute costs the communication"),
        Column("hidden_ns", "float64", "ns", "sum of hidden_ns; null when unknown"),
        Column("exposed_ns", "float64", "ns", "sum of exposed_ns; null when unknown"),
        Column("algbw_gb_s", "float64", "GB/s", "median over records; over those that are no lower bounds, if there are any"),
        Column("busbw_gb_s", "float64", "GB/s", "the same"),
        Column("lower_bound", "bool", "", "all records are lower bounds, so the bandwidths are at least these"),
    ),
)


def collectives_by_kind(run: Joined, split: Waits, groups: Table, ledger: Table) -> Table:
    """Table `collectives_by_kind`, a row a kind and group, longest duration first."""
    frame = ledger.frame
    kind, kinds = pd.factorize(frame["collective"].to_numpy(dtype=object))
    key, found = pd.factorize(run.groups.code * (len(kinds) + 1) + kind)
    n = len(found)
    duration, wait, transfer = (frame[c].to_numpy().astype(np.float64) for c in ("duration_ns", "wait_ns", "transfer_ns"))
    parted = run.asked & np.isfinite(transfer) & np.isfinite(wait)
    alone = _alone(run, split, frame, kind)
    records = np.flatnonzero(run.asked)
    first = records[np.unique(split.operation[records], return_index=True)[1]]
    size = run.trace.collectives["size_bytes"].to_numpy().astype(np.float64)

    def total(values: Floats, rows: npt.NDArray[np.generic]) -> Floats:
        """Sum by kind and group over the rows; NaN where there are none."""
        count = np.bincount(key[rows], minlength=n)
        return np.where(count > 0, np.bincount(key[rows], values[rows], n), np.nan)

    told = parted & np.isfinite(alone)
    complete = np.bincount(key[parted & ~told], minlength=n) == 0
    alone_sum = np.where(complete, total(alone, told), np.nan)
    speed = run.asked & np.isfinite(frame["algbw_gb_s"].to_numpy())
    sure = speed & ~frame["lower_bound"].to_numpy()
    bounded = np.bincount(key[sure], minlength=n) == 0
    speed = np.where(bounded[key], speed, sure)
    code = (found // (len(kinds) + 1)).astype(np.int64)
    about = groups.frame.iloc[code]
    data = {
        "collective": kinds[found % (len(kinds) + 1)],
        **{name: about[name].to_numpy() for name in ("group", "group_size", "dimension", "link")},
        "n_operations": np.bincount(key[first], minlength=n),
        "n_records": np.bincount(key[records], minlength=n),
        "total_bytes": total(np.where(size >= 0, size, np.nan), first),
        "duration_ns": total(duration, records),
        "shortest_ns": total(split.shortest_ns, first),
        "n_split": np.bincount(key[parted], minlength=n),
        "wait_ns": total(wait, parted),
        "transfer_ns": total(transfer, parted),
        "alone_ns": alone_sum,
        "excess_ns": total(transfer, parted) - alone_sum,
        "hidden_ns": total(frame["hidden_ns"].to_numpy(), records),
        "exposed_ns": total(frame["exposed_ns"].to_numpy(), records),
        **{name: medians(key[speed], frame[name].to_numpy()[speed], n) for name in ("algbw_gb_s", "busbw_gb_s")},
        "lower_bound": bounded & (np.bincount(key[speed], minlength=n) > 0),
    }
    rows = pd.DataFrame(data).query("n_records > 0").sort_values("duration_ns", ascending=False, kind="stable", ignore_index=True)
    return Table.of(COLLECTIVES_BY_KIND, rows)


def _alone(run: Joined, split: Waits, frame: pd.DataFrame, kind: Codes) -> Floats:
    """For each record the median transfer of the same message (kind, group, type, bytes) without compute beside it."""
    if not len(frame):
        return np.zeros(0)  # pandas 2 cannot factorize an empty MultiIndex
    hidden, duration = frame["hidden_ns"].to_numpy(), frame["duration_ns"].to_numpy()
    transfer = frame["transfer_ns"].to_numpy()
    size, dtype = run.trace.collectives["size_bytes"].to_numpy(), frame["dtype"].cat.codes.to_numpy()
    message = pd.MultiIndex.from_arrays([run.groups.code, kind, size, dtype])
    code, found = pd.factorize(message)
    clean = np.isfinite(transfer) & (hidden < CLEAN_BELOW * np.maximum(duration, 1)) & ~split.reasons["first"]
    count = np.bincount(code[clean], minlength=len(found))
    middle = medians(code[clean], transfer[clean], len(found))
    return np.where(count >= MINIMUM, middle, np.nan)[code]
