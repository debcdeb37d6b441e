"""NCCL_DEBUG=INFO logs → what NCCL chose: channels of each communicator, algorithm and protocol of each collective.

The choices per collective need NCCL_DEBUG_SUBSYS=INIT,TUNING (or ALL). Rows of every rank whose lines are in the log.
"""

import re
from collections import Counter
from typing import Any

from c3prof.errors import UnreadableInput
from c3prof.kernels import collective_kind
from c3prof.trace import NCCL_CHOICES, NONE, RANKS, Trace

MARK = re.compile(rb"\bNCCL INFO\b")

_PLACE = re.compile(r"(?P<host>[^\s:]+):(?P<pid>\d+):(?P<tid>\d+) \[(?P<device>\d+)\] NCCL INFO (?P<text>.*)")
_COMM = re.compile(r"comm (?P<comm>0x[0-9a-f]+) rank (?P<rank>\d+) n[Rr]anks (?P<ranks>\d+).*Init (?:COMPLETE|START)")
_CHANNELS = re.compile(r"(?P<channels>\d+) coll channels")
_TUNED = re.compile(
    r"(?P<kind>\w+): (?P<bytes>\d+) Bytes -> Algo (?P<algorithm>\w+) proto (?P<protocol>\w+)(?:.*channel\{Lo\.\.Hi\}=\{(?P<low>\d+)\.\.(?P<high>\d+)\})?"
)
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")


def nccl_log(content: bytes, name: str) -> Trace:
    """A Trace with the frame nccl_choices. UnreadableInput when the log tells neither a channel nor a choice."""
    ranks: dict[str, tuple[int, int]] = {}
    channels: dict[str, int] = {}
    choices: Counter[tuple[str, str, int, str, str, int]] = Counter()
    for line in content.decode("utf-8", "replace").splitlines():
        place = _PLACE.search(line)
        if place is None:
            continue
        process, text = f"{place['host']}:{place['pid']}", place["text"]
        if comm := _COMM.search(text):
            ranks[process] = int(comm["rank"]), int(comm["ranks"])
        elif found := _CHANNELS.search(text):
            channels[process] = int(found["channels"])
        elif tuned := _TUNED.search(text):
            used = int(tuned["high"]) - int(tuned["low"]) + 1 if tuned["low"] else NONE
            named = _named(tuned["algorithm"], _ALGORITHMS), _named(tuned["protocol"], _PROTOCOLS)
            choices[(process, collective_kind(f"nccl:{tuned['kind']}"), int(tuned["bytes"]), *named, used)] += 1
    if not channels and not choices:
        raise UnreadableInput(f"{name}: no channels and no choices in this log; run with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING")
    return _trace(name, ranks, channels, choices)


def _named(text: str, names: tuple[str, ...]) -> str:
    """Older NCCL writes numbers."""
    return names[int(text)] if text.isdigit() and int(text) < len(names) else text.upper()


def _trace(
    name: str, ranks: dict[str, tuple[int, int]], channels: dict[str, int], choices: Counter[tuple[str, str, int, str, str, int]]
) -> Trace:
    processes = sorted({*ranks, *channels, *(choice[0] for choice in choices)}, key=lambda p: ranks.get(p, (1 << 30, 0)))
    number = {process: ranks[process][0] if process in ranks else -1 - at for at, process in enumerate(processes)}
    rows: list[dict[str, Any]] = []
    for process in processes:
        mine: list[tuple[Any, int]] = [(choice, n) for choice, n in choices.items() if choice[0] == process]
        for (_, kind, size, algorithm, protocol, used), n in mine or [((process, None, NONE, None, None, NONE), 0)]:
            row = {"rank": number[process], "collective": kind, "size_bytes": size, "algorithm": algorithm, "protocol": protocol, "n": n}
            rows.append(row | {"channels": used if used != NONE else channels.get(process, NONE)})
    rank_rows: list[dict[str, Any]] = [
        {"rank": number[p], "path": name, "world_size": ranks.get(p, (0, NONE))[1], "host": p.partition(":")[0], "backend": "nccl"}
        | {"rank_evidence": "log" if p in ranks else "none", "base_ns": 0, "tick_ns": 1, "device_name": None, "events": 0}
        for p in processes
    ]
    order = sorted(range(len(rank_rows)), key=lambda at: rank_rows[at]["rank"])
    frame = NCCL_CHOICES.frame(
        {column: [row[column] for row in sorted(rows, key=lambda row: row["rank"])] for column in NCCL_CHOICES.names}
    )
    return Trace(
        nccl_choices=frame,
        ranks=RANKS.frame({column: [rank_rows[at][column] for at in order] for column in rank_rows[0]}),
        coverage={number[p]: {"events": 0, "activities": 0} for p in processes},
    )
