"""NCCL Inspector (its profiler plugin's JSON lines, NCCL 2.28 and later) → Trace of one rank.

A line an operation: header (communicator, rank, ranks), metadata (when it was dumped, host) and coll_perf (kind,
sequence number, bytes, execution time). The time of the dump is the only time; operations end there.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from c3prof.errors import DataWarning, UnreadableInput
from c3prof.kernels import collective_kind
from c3prof.readers.comm_records import Source, comm_only
from c3prof.trace import NONE, Trace
from c3prof.units import NS_PER_US

MARK = re.compile(rb'"coll_perf"\s*:')


def nccl_inspector(content: bytes, name: str) -> Trace:
    """The Trace of one Inspector file. UnreadableInput when no line of it is an operation."""
    decoder = msgspec.json.Decoder(dict[str, Any])
    rows, bad, last = [], 0, {}
    for line in content.splitlines():
        if not line.strip():
            continue
        try:
            last = decoder.decode(line)
            rows.append(_row(last))
        except (msgspec.DecodeError, msgspec.ValidationError, KeyError, TypeError, ValueError, OverflowError):
            bad += 1
    if not rows:
        raise UnreadableInput(f"{name}: no operation (coll_perf) in {bad} lines; expected NCCL Inspector's JSON lines")
    header, metadata = last.get("header", {}), last.get("metadata", {})
    warnings = [
        DataWarning("nccl-inspector", "operations end at the time of their dump; durations are NCCL's", path=name, bears_on_numbers=False)
    ]
    if bad:
        warnings.append(DataWarning("bad-line", f"{bad} of {bad + len(rows)} lines cannot be read and are left out", bad, name))
    source = Source(name, int(header.get("rank", NONE)), "file", max(row["group_size"] for row in rows), "nccl", metadata.get("hostname"))
    return comm_only(rows, source, "nccl-inspector", warnings)


def _row(line: Mapping[str, Any]) -> dict[str, Any]:
    header, perf = line["header"], line["coll_perf"]
    end = int(line["metadata"]["dump_timestamp_us"]) * NS_PER_US
    start = end - round(float(perf["coll_exec_time_us"]) * NS_PER_US)
    return {
        "start_ns": start,
        "end_ns": end,
        "collective": collective_kind(f"nccl:{perf['coll']}"),
        "group": str(header["id"]),
        "group_size": int(header.get("n_ranks", NONE)),
        "seq": int(perf["coll_sn"]),
        "size_bytes": int(perf["coll_msg_size_bytes"]),
        "launch_end_ns": start,
    }
