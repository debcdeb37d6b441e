"""What the communication hook recorded, joined to what the profiler saw of the same operations.

gloo's spans carry no group, bytes or sequence number; the hook's records do. On a GPU the profiler may know them too,
but Kineto before torch 2.13 has no sequence number.
"""

from collections import defaultdict, deque

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.trace import COLLECTIVES, NONE

_CLOCK_NS = 50_000  # the profiler's clock and time.time_ns() agree to microseconds
_TAKEN_OVER = (
    "collective",
    "group",
    "group_desc",
    "group_size",
    "group_ranks",
    "seq",
    "dtype",
    "in_elements",
    "out_elements",
    "size_bytes",
    "peer",
    "step",
    "wait_start_ns",
    "blocked_ns",
)
_RUNS_AS = {"reduce_scatter": "all_reduce"}  # gloo's reduce_scatter is an all_reduce of the full input

Int = npt.NDArray[np.int64]


def joined(collectives: pd.DataFrame, records: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The collectives of one rank with what the hook knows of them, and how many were found in both."""
    if not len(collectives) or not len(records):
        return collectives, 0
    on_host = (collectives["device"].to_numpy() < 0) & (collectives["evidence"] == "annotation").to_numpy()
    match = np.full(len(collectives), NONE, np.int64)
    match[on_host] = _by_order(collectives[on_host], records)
    match[~on_host] = _by_launch(collectives[~on_host], records)
    found = np.flatnonzero(match >= 0)
    columns = {}
    for name in _TAKEN_OVER:
        values = collectives[name].astype(object).to_numpy(copy=True)
        values[found] = records[name].astype(object).to_numpy()[match[found]]
        columns[name] = values
    launched = collectives["start_ns"].to_numpy(copy=True)
    launched[found] = records["start_ns"].to_numpy()[match[found]]
    ends = collectives["launch_end_ns"].to_numpy(copy=True)
    ends[found] = records["launch_end_ns"].to_numpy()[match[found]]
    # gloo's span outlives the collective by its callbacks: whoever was told of the end, or waited for it, knows better.
    told = np.where((match >= 0) & on_host, records["end_ns"].to_numpy()[match], NONE)
    start, end = collectives["start_ns"].to_numpy(), collectives["end_ns"].to_numpy()
    end = np.where(told > start, np.minimum(end, told), end)
    kept = {name: collectives[name].array for name in COLLECTIVES.names}
    return _ordered({**kept, **columns, "end_ns": end, "launch_end_ns": ends}, launched), len(found)


def with_backend_durations(records: pd.DataFrame, dumped: pd.DataFrame) -> pd.DataFrame:
    """The records with the end that torch's flight recorder implies (duration_ms from the call on), where no other is known.

    dumped: recorded_collectives of the dumps; an entry belongs to the call in which it was created.
    """
    timed = dumped[dumped["end_ns"].to_numpy() >= 0].drop_duplicates("start_ns").sort_values("start_ns")
    if not len(timed) or not len(records):
        return records
    created, ends = timed["start_ns"].to_numpy(), records["end_ns"].to_numpy(copy=True)
    duration = timed["end_ns"].to_numpy() - created
    at = np.minimum(np.searchsorted(created, records["start_ns"].to_numpy()), len(created) - 1)
    inside = (created[at] >= records["start_ns"].to_numpy()) & (created[at] <= records["launch_end_ns"].to_numpy()) & (ends < 0)
    return records.assign(end_ns=np.where(inside, records["start_ns"].to_numpy() + duration[at], ends))


def in_light_mode(records: pd.DataFrame) -> pd.DataFrame:
    """The collectives frame of a rank without profiler windows: the records whose end is known, as the host saw them."""
    ended = records[records["end_ns"] >= 0].reset_index(drop=True)
    extra = {"stream": NONE, "order": 0, "op": NONE, "kernels": 0}
    data = {column: ended[column].array if column in ended else np.full(len(ended), extra[column]) for column in COLLECTIVES.names}
    return _ordered(data, ended["start_ns"].to_numpy())


def _by_launch(collectives: pd.DataFrame, records: pd.DataFrame) -> Int:
    """The record whose call holds the launch of each device operation, -1 for none."""
    launched, calls, returns = collectives["launch_end_ns"].to_numpy(), records["start_ns"].to_numpy(), records["launch_end_ns"].to_numpy()
    at = np.searchsorted(calls, launched, side="right") - 1
    inside = (at >= 0) & (launched >= 0) & (launched <= returns[at] + _CLOCK_NS)
    return np.where(inside, at, NONE)


def _by_order(spans: pd.DataFrame, records: pd.DataFrame) -> Int:
    """The record of each host span: of one kind and size they run in the order of their calls, none before its own call.

    A first pass asks for the same number of elements, where the profiler recorded shapes; a second takes what is left.
    """
    match = np.full(len(spans), NONE, np.int64)
    start, elements = spans["start_ns"].to_numpy(), spans["in_elements"].to_numpy()
    kinds = [_RUNS_AS.get(kind, kind) for kind in spans["collective"].astype(str)]
    record_kinds = [_RUNS_AS.get(kind, kind) for kind in records["collective"].astype(str)]
    calls, ends = records["start_ns"].to_numpy(), records["end_ns"].to_numpy()
    sizes = [records["in_elements"].to_numpy(), records["out_elements"].to_numpy()]
    taken = np.zeros(len(records), bool)
    window = (calls >= (start.min(initial=0) if len(start) else 0) - 60_000_000_000) & (calls <= start.max(initial=0) + _CLOCK_NS)
    for exact in (True, False):
        waiting: dict[tuple[str, int], deque[int]] = defaultdict(deque)
        for at in np.flatnonzero(window & ~taken):
            for size in {int(values[at]) for values in sizes} if exact else {0}:
                waiting[record_kinds[at], size].append(int(at))
        for row in np.argsort(start, kind="stable"):
            if match[row] >= 0:
                continue
            queue = waiting[kinds[row], int(elements[row]) if exact else 0]
            while queue and (taken[queue[0]] or (0 <= ends[queue[0]] < start[row] - _CLOCK_NS)):
                queue.popleft()
            if queue and calls[queue[0]] <= start[row] + _CLOCK_NS:
                match[row] = queue.popleft()
                taken[match[row]] = True
    return match


def _ordered(data: dict[str, object], launched: Int) -> pd.DataFrame:
    """The frame with each operation's place in the order of launch of its group."""
    frame = COLLECTIVES.frame(data)
    group = frame["group"].cat.codes.to_numpy()
    order = np.lexsort((launched, group))
    place = pd.Series(group[order]).groupby(group[order]).cumcount().to_numpy()
    result = np.empty(len(frame), np.int64)
    result[order] = place
    return frame.assign(order=result)
