"""How much of the device a collective's kernel takes from a compute kernel beside it (docs/metrics.md §3, footprint)."""

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from c3prof.analysis import intervals
from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.settings import Settings
from c3prof.kernels import COMM, COMPUTE
from c3prof.table import Column, Schema, Table
from c3prof.trace import Trace

FOOTPRINT = Schema(
    "footprint",
    "What a communication kernel takes from the compute kernels beside it: workgroups, SMs and waves",
    (
        Column("rank", "int32", "", "global rank; negative when the file does not name it"),
        Column("kernel", "object", "", "compute kernel"),
        Column("grid", "object", "", "its launch grid"),
        Column("co_runner", "object", "", "communication kernel"),
        Column("n", "int64", "", "times that the compute kernel shared time with it"),
        Column("shared_ns", "int64", "ns", "time that they shared"),
        Column("workgroups", "object", "", "blocks of the communication kernel (NCCL: one a channel)"),
        Column("sms", "object", "", "SMs of the device"),
        Column("sm_share", "float64", "ratio", "SMs that the communication kernel takes at most, over all"),
        Column("blocks", "object", "", "blocks of the compute kernel"),
        Column("resident", "object", "", "its blocks that fit on an SM, from threads, registers and shared memory"),
        Column("waves", "object", "", "ceil(blocks / (SMs · resident)) with all SMs"),
        Column(
            "waves_beside", "object", "", "the same without the SMs of the communication kernel: an upper bound, its blocks can share SMs"
        ),
        Column("occupancy", "float64", "%", "estimated achieved occupancy as recorded"),
        Column("likely_cause", "object", "", "sm-bound when the waves grow, bandwidth-bound when they do not"),
        Column("ground", "object", "", "what likely_cause rests on"),
        Column("note", "object", "", "why a value is unknown"),
    ),
)

_PERSISTENT = re.compile(r"persistent|stream_?k|splitk_parallel_streamk|_tma_warpspecialized|nvjet", re.IGNORECASE)
NO_GRID, PERSISTENT, NO_DEVICE = (
    "no launch grid recorded",
    "persistent or stream-K kernel: its grid does not tell its work",
    "no device properties",
)
_WARP = 32


def waves(blocks: int, sms: int, resident: int) -> int:
    """How many rounds of blocks a kernel needs: ceil(blocks / (SMs · resident)). ValueError without SMs or room."""
    if sms < 1 or resident < 1:
        raise ValueError("a kernel needs at least one SM and room for one block")
    return -(-blocks // (sms * resident))


def resident_blocks(threads: int, registers: int, shared_memory: int, device: Mapping[str, Any]) -> int | None:
    """Blocks of a kernel that fit on an SM by threads, registers and shared memory; None when the device is not described.

    Registers and shared memory below 0 are unknown and limit nothing. Source: deviceProperties of the trace; registers
    are given out to warps in units of 256 (CUDA C programming guide, compute capabilities).
    """
    room = device.get("maxThreadsPerMultiprocessor")
    if not room or threads < 1:
        return None
    limits = [int(room) // (-(-threads // _WARP) * _WARP)]
    if device.get("regsPerMultiprocessor") and registers > 0:
        warps = -(-threads // _WARP)
        limits.append(int(device["regsPerMultiprocessor"]) // (-(-registers * _WARP // 256) * 256 * warps))
    memory = device.get("sharedMemPerMultiprocessor")
    if memory and shared_memory > 0:
        limits.append(int(memory) // shared_memory)
    return min(limits) if min(limits) > 0 else None


def footprint(trace: Trace, _: Mapping[str, Table], __: Settings) -> tuple[Table, ...]:
    """The table footprint: a row a compute kernel (name, grid) and communication kernel that shared time, longest first."""
    frames = []
    activities = work(trace)
    for (rank, device), rows in activities[activities["device"] >= 0].groupby(["rank", "device"], sort=False):
        pairs = _pairs(rows)
        if len(pairs):
            described = trace.devices.get((int(rank), int(device)), {})
            frames.append(pd.DataFrame([_row(pair, described) for pair in pairs.to_dict("records")]).assign(rank=rank))
    if not frames:
        return (Table.of(FOOTPRINT),)
    return (
        Table.of(FOOTPRINT, pd.concat(frames, ignore_index=True)[FOOTPRINT.names].sort_values("shared_ns", ascending=False, kind="stable")),
    )


def _pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """Compute kernels and communication kernels that share time, by name and launch: counts and shared ns."""
    launch = ["name", "grid", "block", "shared_memory", "registers"]
    compute = rows[(rows["class"] == COMPUTE) & (rows["kind"] != "memcpy")]
    comm = rows[(rows["class"] == COMM) & (rows["kind"] != "memcpy")]
    found, beside, shares = [], [], []
    for co_runner, some in comm.groupby(["name", "grid"], observed=True, dropna=False):
        shared = np.zeros(len(compute), np.int64)
        for stream, own in some.groupby("stream"):
            spans = intervals.union(own["start_ns"].to_numpy(), own["end_ns"].to_numpy())
            others = (compute["stream"] != stream).to_numpy()
            shared[others] += intervals.shared_ns(compute["start_ns"].to_numpy()[others], compute["end_ns"].to_numpy()[others], spans)
        found.append(co_runner)
        beside.append(np.flatnonzero(shared))
        shares.append(shared[beside[-1]])
    if not found:
        return pd.DataFrame()
    # One sum over all of them: there can be thousands of communication kernels, each with its own grid.
    which = np.repeat(np.arange(len(found)), [len(rows) for rows in beside])
    pairs = compute.iloc[np.concatenate(beside)].assign(shared_ns=np.concatenate(shares), n=1, which=which)
    sums = pairs.groupby(["which", *launch], observed=True, dropna=False, as_index=False).agg(
        n=("n", "sum"), shared_ns=("shared_ns", "sum"), occupancy=("occupancy", "median")
    )
    co_runners = [found[place] for place in sums["which"]]
    return sums.assign(co_runner=[str(name) for name, _ in co_runners], comm_grid=[grid for _, grid in co_runners])


def blocks_of(grid: object) -> int | None:
    """Blocks of a launch grid written as [x,y,z]; None when it was not recorded."""
    sizes = [int(size) for size in re.findall(r"\d+", grid)] if isinstance(grid, str) else []
    return math.prod(sizes) if sizes else None


def _row(pair: Mapping[str, Any], device: Mapping[str, Any]) -> dict[str, Any]:
    blocks, taken, sms = blocks_of(pair["grid"]), blocks_of(pair["comm_grid"]), device.get("numSms")
    threads = blocks_of(pair["block"])
    resident = resident_blocks(threads, int(pair["registers"]), int(pair["shared_memory"]), device) if threads else None
    reason = (
        NO_GRID if blocks is None or taken is None or threads is None
        else NO_DEVICE if not sms or resident is None
        else PERSISTENT if _PERSISTENT.search(str(pair["name"]))
        else None
    )  # fmt: skip
    row = {
        "kernel": str(pair["name"]),
        "grid": pair["grid"] if isinstance(pair["grid"], str) else None,
        **{name: pair[name] for name in ("co_runner", "n", "shared_ns", "occupancy")},
        "workgroups": taken,
        "sms": int(sms) if sms else None,
        "sm_share": min(taken / sms, 1.0) if taken and sms else np.nan,
        "blocks": blocks,
        "resident": resident,
        **dict.fromkeys(("waves", "waves_beside", "likely_cause", "ground")),
        "note": reason,
    }
    if reason is None and blocks and taken and sms and resident:
        left = max(int(sms) - taken, 0)
        row |= _judged(waves(blocks, int(sms), resident), waves(blocks, left, resident) if left else None)
    return row


def _judged(alone: int, beside: int | None) -> dict[str, Any]:
    if beside is None:
        return {"waves": alone, "likely_cause": "sm-bound", "ground": "the communication kernel has a block for every SM"}
    if beside > alone:
        ground = f"{alone} waves become up to {beside} without its SMs"
        return {"waves": alone, "waves_beside": beside, "likely_cause": "sm-bound", "ground": ground}
    ground = f"{alone} waves with and without its SMs: what slows it is elsewhere, most likely memory bandwidth"
    return {"waves": alone, "waves_beside": beside, "likely_cause": "bandwidth-bound", "ground": ground}
