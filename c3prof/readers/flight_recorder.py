"""torch's flight recorder as JSON (fields of torch 2.6 to 2.13) → Trace of one rank.

Durations are the backend's own (duration_ms, with TORCH_NCCL_ENABLE_TIMING=1). Where an operation stands in time is only
known by its creation on the host: it is shown from there on, for as long as it took. The files name no rank; it is taken
from the file's name (nccl_trace_rank_3, fr_rank3.json).
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from c3prof.errors import DataWarning, UnreadableInput
from c3prof.kernels import collective_kind
from c3prof.readers.comm_records import Source, comm_only
from c3prof.readers.operations import item_size
from c3prof.trace import NONE, Trace
from c3prof.units import NS_PER_MS

MARK = re.compile(rb'"(?:collective_seq_id|nccl_version|pg_status)"\s*:')
_RANK = re.compile(r"rank[_-]?0*(\d+)|[_-]0*(\d+)(?:\.json)?$", re.IGNORECASE)
_POINT_TO_POINT = re.compile(r":(send|recv)\s+(\d+)\s*(->|<-)\s*(\d+)")


def flight_recorder(content: bytes, name: str, rank: int | None = None) -> Trace:
    """The Trace of one dump. UnreadableInput when it is not JSON or has no entries."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(f"{name}: not a whole flight recorder dump ({error})") from error
    if not isinstance(document, dict) or not isinstance(document.get("entries"), list):
        raise UnreadableInput(f"{name}: no entries; expected a flight recorder dump as JSON (_dump_nccl_trace_json)")
    named = _RANK.search(name.rsplit("/", 1)[-1])
    found = rank if rank is not None else int(named[1] or named[2]) if named else NONE
    groups = document["pg_config"] if isinstance(document.get("pg_config"), dict) else {}
    rows = [row for entry in document["entries"] if isinstance(entry, dict) and (row := _row(entry, groups))]
    world = max((row["group_size"] for row in rows), default=NONE)
    evidence = "manifest" if rank is not None else "file name" if named else "none"
    source = Source(name, found, evidence, world, "nccl" if "nccl_version" in document else "gloo")
    return comm_only(rows, source, "flight-recorder", _warnings(rows, len(document["entries"]), name))


def _row(entry: Mapping[str, Any], groups: Mapping[str, Any]) -> dict[str, Any] | None:
    """One operation; None for an entry without the fields that every version has, or with values that cannot be."""
    try:
        return _operation(entry, groups)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _operation(entry: Mapping[str, Any], groups: Mapping[str, Any]) -> dict[str, Any]:
    created, operation = _whole(entry["time_created_ns"]), str(entry["profiling_name"])
    group = entry.get("process_group") or []
    group_name = str(group[0]) if group else str(entry.get("pg_id", ""))
    ranks = _ranks(groups.get(group_name, {}))
    p2p = _POINT_TO_POINT.search(operation)
    dtype = next(iter(entry.get("input_dtypes") or entry.get("output_dtypes") or []), "")
    inputs, outputs = (_elements(entry.get(key)) for key in ("input_sizes", "output_sizes"))
    duration = entry.get("duration_ms")
    return {
        "start_ns": created,
        "end_ns": NONE if duration is None else created + round(float(duration) * NS_PER_MS),
        "collective": p2p[1] if p2p else collective_kind(operation),
        "group": group_name,
        "group_desc": str(group[1]) if len(group) > 1 else None,
        "group_size": len(ranks) or NONE,
        "group_ranks": json.dumps(ranks, separators=(",", ":")) if ranks else None,
        "seq": _whole(entry.get("p2p_seq_id" if entry.get("is_p2p") else "collective_seq_id", NONE)),
        "dtype": dtype or None,
        "in_elements": inputs,
        "out_elements": outputs,
        "size_bytes": max(inputs, outputs) * item_size(dtype) if dtype and item_size(dtype) else NONE,
        "peer": int(p2p[4]) if p2p else NONE,
        "launch_end_ns": created,
    }


def _whole(value: Any) -> int:
    """The value as an int that 64 bits hold with room to spare; ValueError or TypeError for any other."""
    number = int(value)
    if abs(number) >= 1 << 62:
        raise ValueError(f"{number} does not fit into 64 bits")
    return number


def _ranks(config: Any) -> list[int]:
    """Members of a group: "[0, 1]" as text, or a list."""
    ranks = config.get("ranks") if isinstance(config, dict) else None
    if isinstance(ranks, str):
        return [int(number) for number in re.findall(r"\d+", ranks)]
    return [int(number) for number in ranks] if isinstance(ranks, list) else []


def _elements(sizes: Any) -> int:
    total = 0
    for size in sizes or []:
        product = 1
        for length in size:
            product *= int(length)
        total += product
    return _whole(total)


def _warnings(rows: list[dict[str, Any]], entries: int, name: str) -> list[DataWarning]:
    warnings = [
        DataWarning(
            "flight-recorder",
            "starts are the times of the calls on the host; durations are the backend's",
            path=name,
            bears_on_numbers=False,
        )
    ]
    if entries > len(rows):
        warnings.append(
            DataWarning(
                "bad-entry", f"{entries - len(rows)} of {entries} entries lack a time or a name and are left out", entries - len(rows), name
            )
        )
    unknown = sum(row["end_ns"] == NONE for row in rows)
    if unknown:
        cure = "set TORCH_NCCL_ENABLE_TIMING=1; gloo records none"
        warnings.append(
            DataWarning(
                "no-duration", f"{unknown} of {len(rows)} operations have no duration and are not in collectives ({cure})", unknown, name
            )
        )
    return warnings
