"""Kineto files of a simulated job: one JSON a rank, with compute kernels, launches and operators around the communication."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.sample_traces.ranks import EPOCH_NS, Job, simulated
from c3prof.trace import Trace

Array = npt.NDArray[np.int64]

_DEVICE = {"id": 0, "name": "simulated", "numSms": 132, "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "warpSize": 32}
_LAUNCH_LEAD_NS = 200_000
_CPU_AHEAD_NS = 320_000
"""How far the CPU's steps are ahead of the device's: a little more than the launch of a collective."""

_EVENTS_A_KERNEL = 3
_C10D = {"all_reduce": "allreduce", "all_to_all": "alltoall", "send": "send", "recv": "recv"}


def write_rank_files(job: Job, folder: Path, events: int = 2_000, *, compressed: bool = True) -> list[Path]:
    """The files written, one for each recorded rank, each with about that many events.

    A kernel, its launch and its operator are an event each. The compute of a rank fills the time between two
    collectives, so that overlap is 0 and waits and transfers are those of `simulated(job)`.
    """
    run = simulated(job).trace
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for trace in run.each_rank():
        path = folder / f"rank{trace.rank_numbers[0]}.json{'.gz' if compressed else ''}"
        text = _file(trace, job, events).encode()
        path.write_bytes(gzip.compress(text, 1, mtime=0) if compressed else text)
        paths.append(path)
    return paths


def _file(trace: Trace, job: Job, events: int) -> str:
    rank = trace.rank_numbers[0]
    declared = [
        {"pg_name": g, "pg_desc": d, "backend_config": "cuda:nccl", "pg_size": int(n), "ranks": json.loads(m.replace(",...", ""))}
        for g, d, n, m in trace.groups[["group", "group_desc", "group_size", "group_ranks"]].itertuples(index=False)
    ]
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{**_DEVICE, "id": rank % max(job.ranks_per_host, 1)}],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": job.ranks, "pg_count": len(declared), "pg_config": declared},
        "baseTimeNanoseconds": EPOCH_NS,
    }
    host = trace.ranks["host"].iloc[0]
    if host is not None:
        head["host_name"] = host
    lines = [*_step_lines(trace), *_communication_lines(trace), *_compute_lines(trace, events)]
    return json.dumps(head)[:-1] + ', "traceEvents": [\n' + ",\n".join(lines) + "\n]}\n"


def _event(category: str, name: str, start: int, end: int, tid: int | str, args: dict[str, Any]) -> str:
    row = {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": tid, "args": args}
    return f'{{"ts": {_us(start)}, "dur": {_us(end - start)}, {json.dumps(row)[1:]}'


def _us(ns: int) -> str:
    sign, ns = ("-" if ns < 0 else ""), abs(ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


def _step_lines(trace: Trace) -> list[str]:
    return [
        _event(
            "user_annotation",
            f"ProfilerStep#{step}",
            start - EPOCH_NS - _CPU_AHEAD_NS,
            end - EPOCH_NS - _CPU_AHEAD_NS - 1,
            1,
            {},
        )
        for step, start, end in trace.steps[["step", "start_ns", "end_ns"]].itertuples(index=False)
    ]


def _communication_lines(trace: Trace) -> list[str]:
    lines = []
    for number, row in enumerate(trace.collectives.itertuples(index=False)):
        start, end, launched = (int(value) - EPOCH_NS for value in (row.start_ns, row.end_ns, row.launch_end_ns))
        args: dict[str, Any] = {
            "Collective name": _C10D[row.collective],
            "In msg nelems": int(row.in_elements),
            "Out msg nelems": int(row.out_elements),
            "Group size": int(row.group_size),
            "dtype": "Float",
            "Process Group Name": row.group,
            "Process Group Description": row.group_desc,
            "Process Group Ranks": row.group_ranks.replace(",", ", "),
        }
        if row.seq >= 0:
            args["Seq"] = int(row.seq)
        if row.peer >= 0:
            args["Dst Rank" if row.collective == "send" else "Src Rank"] = int(row.peer)
        link = {"correlation": number + 1, "External id": number + 1}
        kernel = f"ncclDevKernel_{'SendRecv' if row.collective in ('send', 'recv', 'all_to_all') else 'AllReduce_Sum_f32_RING_LL'}(ncclDevKernelArgsStorage<4096ul>)"
        on = {"device": int(row.device), "stream": int(row.stream), "grid": [16, 1, 1], "block": [512, 1, 1]}
        lines += [
            _event("cpu_op", "record_param_comms", launched - 9_000, launched + 1_000, 2, {**link, **args}),
            _event("cuda_runtime", "cudaLaunchKernelExC", launched - 5_000, launched, 2, link),
            _event("kernel", kernel, start, end, int(row.stream), {**on, **link, **args}),
        ]
    return lines


def _compute_lines(trace: Trace, events: int) -> list[str]:
    """Kernels on stream 7 that fill the time before each collective, with launches and operators."""
    start, end = _compute_spans(trace.collectives, events)
    n, first = len(start), 1_000_000
    head = '"ph": "X", "pid": 0'
    lines: list[str] = []
    names = (
        "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_nn",
        "void at::native::vectorized_elementwise_kernel<4, float>",
        "flash_fwd_kernel",
    )
    on = f'"device": {int(trace.collectives["device"].iloc[0]) if n else 0}, "stream": 7'
    for i, (low, high) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        ident, called = first + i, low - _LAUNCH_LEAD_NS
        third = max((high - low) // 3, 1)
        operator = (
            f'"ts": {_us(called - third)}, "dur": {_us(2 * third)}, "args": {{"External id": {ident}, "Input Dims": [[{64 + i % 7}, 64]]}}'
        )
        launch = f'"ts": {_us(called)}, "dur": {_us(third // 2)}, "args": {{"External id": {ident}, "correlation": {ident}}}'
        link = f'"External id": {ident}, "correlation": {ident}, {on}, "grid": [{128 + i % 7}, 1, 1], "block": [256, 1, 1]'
        kernel = f'"name": "{names[i % 3]}", "ts": {_us(low)}, "dur": {_us(high - low)}, "args": {{{link}}}'
        lines += (
            f'{{{head}, "tid": 1, "cat": "cpu_op", "name": "aten::mm", {operator}}}',
            f'{{{head}, "tid": 1, "cat": "cuda_runtime", "name": "cudaLaunchKernel", {launch}}}',
            f'{{{head}, "tid": 7, "cat": "kernel", {kernel}}}',
        )
    return lines


def _compute_spans(collectives: pd.DataFrame, events: int) -> tuple[Array, Array]:
    """Starts and ends of kernels that share the gaps before the collectives evenly, a tenth of each left idle."""
    start, end = (collectives[c].to_numpy() - EPOCH_NS for c in ("start_ns", "end_ns"))
    if not len(start):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    opened = np.concatenate([[start[0] - 1_000_000], end[:-1]])
    each = max((events - _EVENTS_A_KERNEL * len(start)) // (_EVENTS_A_KERNEL * len(start)), 1)
    length = (start - opened) // each
    low = (opened[:, None] + length[:, None] * np.arange(each)).ravel()
    return low, low + np.repeat(np.maximum(length * 9 // 10, 1), each)
