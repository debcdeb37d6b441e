"""How a record's time splits into waiting and moving data, by kind of operation (docs/metrics.md §5)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.clock import SYNCHRONIZING
from c3prof.analysis.joined import Joined

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

FROM_ROOT = ("broadcast", "scatter")
TO_ROOT = ("reduce", "gather")

NOTES = {
    "contradiction": "kind differs from what the other ranks recorded",
    "alone": "no other rank's record",
    "no clock": "clocks of its ranks cannot be compared",
    "kind": "kind unknown",
    "peers": "peer not recorded",
    "root": "root not known or not recorded",
    "root itself": "the root waits for nobody",
    "not root": "only the root waits",
    "unbalanced": "ranks move different amounts",
    "negative": "ends contradict the rule for this kind",
    "buffered": "buffered: the send ended before its recv came",
    "partial": "not recorded on all ranks of the group: one of the others may have come last",
    "partly": "partly done while waiting: busbw is an upper bound",
    "group": "group not recorded: taken as one of all ranks",
    "order": "no sequence number: matched by order",
    "first": "first after the window opened: out of stragglers, fits and slowdown",
    "below bound": "transfer below 3 clock bounds: out of fits and slowdown",
}
"""What a note says, in the order in which notes are joined."""


@dataclass(frozen=True)
class Waits:
    """Arrays with an element a record. NaN and -1: unknown, for the reason in `reasons`.

    operation: as in Matches, with numbers of their own for contradictory records; n: records of the operation;
    last_rank: rank that came last; shortest_ns: shortest duration of the operation's records (needs no clock);
    comparable: several records on one clock; bound_ns: largest clock bound; reasons: NOTES that hold, by record.
    """

    operation: Codes
    n: Codes
    skew_ns: Floats
    wait_ns: Floats
    transfer_ns: Floats
    last_rank: Codes
    shortest_ns: Floats
    comparable: Mask
    bound_ns: Floats
    reasons: dict[str, Mask]


def waits(run: Joined) -> Waits:
    """The Waits of all records.

    transfer = moment the data was there − moment it could move (_moves_from, _moved_at); wait = duration − transfer;
    both are null where one would be negative by more than the clocks' bounds.
    """
    frame = run.trace.collectives
    origin = int(frame["start_ns"].min()) if len(frame) else 0
    start, end = ((frame[c].to_numpy() - origin).astype(np.float64) for c in ("start_ns", "end_ns"))
    records = Records(frame["collective"].to_numpy(dtype=object), frame["rank"].to_numpy().astype(np.int64), start, end, run.peer)
    operation = _own_numbers(run.matches.operation)
    same = Operations.of(operation, start, records.rank)
    n = same.count[operation]
    comparable = (n > 1) & same.agree(run.reference)
    reasons = {name: np.zeros(len(frame), bool) for name in NOTES}
    reasons["contradiction"] = run.matches.operation < 0
    reasons["alone"] = (n == 1) & ~reasons["contradiction"]
    reasons["no clock"] = (n > 1) & ~comparable
    moves_from = np.where(comparable, _moves_from(run, records, same, reasons), np.nan)
    transfer = _moved_at(records, same) - moves_from
    wait = (end - start) - transfer
    bound = same.maximum(run.bound_ns)
    wait, transfer = _without_clock_noise(wait, transfer, 2 * bound)
    reasons["buffered"] = comparable & (records.kind == "send") & (end < same.maximum(start))
    reasons["negative"] = ~reasons["buffered"] & ((transfer < 0) | (wait < 0))
    unknown = reasons["buffered"] | reasons["negative"]
    transfer, wait = np.where(unknown, np.nan, transfer), np.where(unknown, np.nan, wait)
    skew = np.where(comparable, same.maximum(start) - same.minimum(start), np.nan)
    size = run.groups.table["size"].to_numpy()[run.groups.code]
    reasons["partial"] = comparable & ~np.isin(records.kind, ("send", "recv", "send_recv")) & (n < size)
    reasons["partly"] = np.isin(records.kind, ("all_gather", "all_to_all")) & (skew > transfer)
    reasons["group"] = comparable & pd.isna(run.groups.table["name"].to_numpy(dtype=object))[run.groups.code]
    reasons["order"] = run.matches.by_order & comparable
    reasons["first"] = same.maximum(run.first.astype(np.float64)) > 0
    reasons["below bound"] = transfer < 3 * bound
    shortest = same.minimum(end - start)
    return Waits(
        operation, n, skew, wait, transfer, np.where(comparable, same.last_rank[operation], -1), shortest, comparable, bound, reasons
    )


@dataclass(frozen=True)
class Records:
    """The columns that the rules need, by record; times in ns from the first start."""

    kind: npt.NDArray[np.object_]
    rank: Codes
    start: Floats
    end: Floats
    peer: Codes


@dataclass(frozen=True)
class Operations:
    """Reductions over the records of an operation. order: records by operation, then start, then falling rank."""

    operation: Codes
    order: Codes
    first: Codes
    count: Codes
    last_rank: Codes

    @classmethod
    def of(cls, operation: Codes, start: Floats, rank: Codes) -> "Operations":
        order = np.lexsort((-rank, start, operation))
        count = np.bincount(operation)
        first = np.cumsum(count) - count
        return cls(operation, order, first, count, rank[order[first + count - 1]])

    def maximum(self, values: Floats) -> Floats:
        """For each record the maximum over its operation."""
        return np.asarray(np.maximum.reduceat(values[self.order], self.first)[self.operation]) if len(values) else values

    def minimum(self, values: Floats) -> Floats:
        return -self.maximum(-values)

    def agree(self, values: Codes) -> Mask:
        """Whether all records of the operation have one value."""
        numbers = values.astype(np.float64)
        return np.asarray(self.maximum(numbers) == self.minimum(numbers))


def _own_numbers(operation: Codes) -> Codes:
    """The operations, with a number of its own for each record that matches nothing; 0, 1, … without gaps."""
    lone = operation < 0
    numbers = np.where(lone, operation.max(initial=-1) + np.cumsum(lone), operation)
    return np.unique(numbers, return_inverse=True)[1]


def _moves_from(run: Joined, records: Records, same: Operations, reasons: dict[str, Mask]) -> Floats:
    """When the data of each record could begin to move; NaN where the kind has no rule for it, with the reason."""
    kind, start = records.kind, records.start
    last = same.maximum(start)
    result = np.full(len(kind), np.nan)
    several = ~(reasons["alone"] | reasons["contradiction"])
    even = ~_unbalanced(run, same) | (kind != "all_to_all")
    together = np.isin(kind, SYNCHRONIZING)
    result[together & even] = last[together & even]
    reasons["unbalanced"] = several & together & ~even

    rooted_from, rooted_to = np.isin(kind, FROM_ROOT), np.isin(kind, TO_ROOT)
    is_root = (rooted_from | rooted_to) & (records.peer == records.rank)
    root_start = same.maximum(np.where(is_root, start, -np.inf))
    receives = rooted_from & ~is_root & np.isfinite(root_start)
    result[receives] = np.maximum(start, root_start)[receives]
    result[rooted_to & is_root] = last[rooted_to & is_root]
    reasons["root"] = several & ((rooted_from & ~is_root & ~receives) | (rooted_to & (records.peer < 0)))
    reasons["root itself"] = several & rooted_from & is_root
    reasons["not root"] = several & rooted_to & ~is_root & (records.peer >= 0)

    pairs = np.isin(kind, ("send", "recv", "send_recv"))
    paired = pairs & (records.peer >= 0)
    result[paired] = last[paired]
    reasons["peers"] = several & pairs & ~paired
    reasons["kind"] = several & ~(together | rooted_from | rooted_to | pairs)
    return result


def _without_clock_noise(wait: Floats, transfer: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """A wait below 0 by no more than two clocks can be off is 0, and the transfer is the whole duration."""
    no_wait = (wait < 0) & (wait >= -noise)
    return np.where(no_wait, 0.0, wait), np.where(no_wait, wait + transfer, transfer)


def _moved_at(records: Records, same: Operations) -> Floats:
    """When the data of each record was there: its own end; of a send the end of the recv."""
    received = same.maximum(np.where(records.kind == "recv", records.end, -np.inf))
    return np.where((records.kind == "send") & np.isfinite(received), received, records.end)


def _unbalanced(run: Joined, same: Operations) -> Mask:
    """all_to_all whose ranks send or receive different amounts, as far as the records say."""
    frame = run.trace.collectives
    sent, received = (frame[c].to_numpy().astype(np.float64) for c in ("in_elements", "out_elements"))
    differ = (sent >= 0) & (received >= 0) & (sent != received)
    for amount in (sent, received):
        known = amount >= 0
        highest = same.maximum(np.where(known, amount, -np.inf))
        lowest = same.minimum(np.where(known, amount, np.inf))
        differ |= np.isfinite(highest) & (highest != lowest)
    return np.asarray(same.maximum(differ.astype(np.float64)) > 0)
