"""Makes the sample runs: small jobs with a story, simulated, written as Kineto files with the truth beside them.

    python -m c3prof.sample_traces.make [folder]

A job is a program that every rank runs: kernels, collectives, waits. A collective ends everywhere at once, `transfer`
after its last arrival; a kernel loses the planted share of its speed while communication runs on its device. The truth
is counted here cell by cell, without the code that is to be checked against it.
"""

import gzip
import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

_BASE_NS = 1_790_857_026_000_000_000
_MAIN_STREAM = 7
_LAUNCH_NS, _LATENCY_NS = 4_000, 6_000
_CPU_OP_NS = 9_000


@dataclass
class Rank:
    """One rank being simulated: its CPU clock, when each stream is free, communication so far, and the events written."""

    number: int
    slower: float = 1.0
    cpu_ns: int = 1_000_000
    free_ns: dict[int, int] = field(default_factory=dict)
    comm: list[tuple[int, int]] = field(default_factory=list)
    activities: list[tuple[str, int, int]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    ids: int = 0

    def event(self, cat: str, name: str, thread: int, start: int, end: int, **args: Any) -> None:
        pid = 0 if cat in ("kernel", "gpu_memcpy") else 4000 + self.number
        times = {"ts": start / 1000, "dur": (end - start) / 1000}
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": thread, **times, "args": args})

    def launch(self, op: str, call: str, thread: int, **op_args: Any) -> tuple[int, int]:
        """An operator that makes one runtime call; the call's end and its correlation id."""
        self.ids += 1
        start = self.cpu_ns
        self.cpu_ns += _CPU_OP_NS
        self.event("cpu_op", op, thread, start, self.cpu_ns, **{"External id": self.ids, **op_args})
        self.event(
            "cuda_runtime", call, thread, start + 2_000, start + 2_000 + _LAUNCH_NS, correlation=self.ids, **{"External id": self.ids}
        )
        return start + 2_000 + _LAUNCH_NS, self.ids

    def run(self, cat: str, name: str, stream: int, start: int, end: int, kind: str, **args: Any) -> None:
        self.free_ns[stream] = end
        self.activities.append((kind, start, end))
        self.event(cat, name, stream, start, end, device=0, stream=stream, **args)


@dataclass
class Job:
    """A job of several ranks. slowdown: factor of a kernel's duration while communication runs beside it."""

    world_size: int
    seed: int
    slowdown: float = 1.0
    slower: dict[int, float] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=lambda: {"0": "default_pg"})
    ranks: list[Rank] = field(init=False)
    sequence: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.noise = random.Random(self.seed)
        self.ranks = [Rank(r, self.slower.get(r, 1.0)) for r in range(self.world_size)]

    def kernel(self, op: str, name: str, work_ns: int, dims: str, *, grid: int = 256, thread: int = 1) -> list[int]:
        """A compute kernel on the main stream of every rank; when it ends on each."""
        ends = []
        for rank in self.ranks:
            called, correlation = rank.launch(
                op, "cudaLaunchKernel", thread, **{"Input Dims": json.loads(dims), "Input type": ["c10::BFloat16"]}
            )
            start = max(called + _LATENCY_NS, rank.free_ns.get(_MAIN_STREAM, 0))
            work = work_ns * rank.slower * self.noise.gauss(1.0, 0.01)
            end = _end_of(start, work, rank.comm, self.slowdown)
            launch = {
                "correlation": correlation,
                "grid": [grid, 1, 1],
                "block": [256, 1, 1],
                "registers per thread": 128,
                "shared memory": 49152,
            }
            rank.run("kernel", name, _MAIN_STREAM, start, end, "compute", **launch)
            ends.append(end)
        return ends

    def collective(
        self, kind: str, elements: int, transfer_ns: int, *, stream: int = 20, group: str = "0", after: list[int] | None = None
    ) -> list[int]:
        """A collective on a stream of its own, ready when `after` (the main stream if None) is; when it ends on each rank."""
        self.sequence[group] = self.sequence.get(group, 0) + 1
        arguments = {
            "Collective name": kind, "In msg nelems": elements, "Out msg nelems": elements, "Group size": self.world_size, "dtype": "BFloat16",
            "Process Group Name": group, "Process Group Description": self.groups[group], "Seq": self.sequence[group],
            "Process Group Ranks": str(list(range(self.world_size))),
        }  # fmt: skip
        called = [rank.launch("record_param_comms", "cudaLaunchKernelExC", 2, **arguments) for rank in self.ranks]
        ready = after or [rank.free_ns.get(_MAIN_STREAM, 0) for rank in self.ranks]
        starts = [
            max(call + _LATENCY_NS, rank.free_ns.get(stream, 0), at) for rank, (call, _), at in zip(self.ranks, called, ready, strict=True)
        ]
        end = max(starts) + round(transfer_ns * self.noise.gauss(1.0, 0.01))
        name = f"ncclDevKernel_{_NCCL[kind]}_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        for rank, start, (_, correlation) in zip(self.ranks, starts, called, strict=True):
            rank.run("kernel", name, stream, start, end, "comm", correlation=correlation, grid=[24, 1, 1], block=[512, 1, 1], **arguments)
            rank.comm.append((start, end))
        return [end] * self.world_size

    def wait(self, *ends: list[int]) -> None:
        """The main stream waits for collectives."""
        for rank in self.ranks:
            at = max(end[rank.number] for end in ends)
            rank.free_ns[_MAIN_STREAM] = max(rank.free_ns.get(_MAIN_STREAM, 0), at)

    def step(self, number: int, body: Callable[[], None]) -> None:
        """A training step; the CPU waits for the device at its end, as reading the loss does."""
        begins = [rank.cpu_ns for rank in self.ranks]
        body()
        for rank, begin in zip(self.ranks, begins, strict=True):
            done = max(rank.free_ns.values())
            rank.event("cuda_runtime", "cudaStreamSynchronize", 1, rank.cpu_ns, max(done, rank.cpu_ns) + 2_000)
            rank.cpu_ns = max(done, rank.cpu_ns) + 10_000
            rank.event("user_annotation", f"ProfilerStep#{number}", 1, begin, rank.cpu_ns - 5_000)


_NCCL = {
    "allreduce": "AllReduce_Sum",
    "_allgather_base": "AllGather",
    "_reduce_scatter_base": "ReduceScatter_Sum",
    "all_to_allv": "SendRecv",
}


def _end_of(start: int, work: float, comm: list[tuple[int, int]], slowdown: float) -> int:
    """When `work` ns of a kernel are done that progresses at 1/slowdown while communication runs."""
    at = float(start)
    for begin, end in sorted(comm):
        if end <= at:
            continue
        if at + work <= begin:
            break
        if begin > at:
            work, at = work - (begin - at), float(begin)
        if at + work * slowdown <= end:
            return round(at + work * slowdown)
        work, at = work - (end - at) / slowdown, float(end)
    return round(at + work)


_GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
_NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*)"
_FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>(pytorch_flash::Flash_fwd_params)"
_ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4>>()"
)


def _forward(job: Job, layers: int) -> None:
    for _ in range(layers):
        job.kernel("aten::layer_norm", _NORM, 40_000, "[[8192, 4096]]")
        job.kernel("aten::mm", _GEMM, 180_000, "[[8192, 4096], [4096, 4096]]", grid=264)
        job.kernel("aten::scaled_dot_product_attention", _FLASH, 160_000, "[[2, 32, 4096, 128]]")


def ddp(steps: int = 6, layers: int = 8) -> Job:
    """DDP on 2 ranks: gradient buckets are all-reduced behind the backward pass; the last bucket is exposed."""
    job = Job(2, seed=1, slowdown=1.25)

    def body() -> None:
        _forward(job, layers)
        pending = []
        for layer in range(layers):
            job.kernel("aten::mm", _GEMM, 360_000, "[[4096, 8192], [8192, 4096]]", grid=264, thread=2)
            ends = job.kernel("aten::layer_norm_backward", _NORM, 60_000, "[[8192, 4096], [8192, 4096]]", thread=2)
            if layer % 2:
                pending.append(job.collective("allreduce", 33_554_432, 620_000, after=ends))
        job.wait(*pending)
        job.kernel("aten::_fused_adam_", _ADAM, 300_000, "[[134217728]]")

    for number in range(steps):
        job.step(number, body)
    return job


def fsdp(steps: int = 6, layers: int = 8) -> Job:
    """FSDP on 2 ranks: all-gathers one layer ahead, the first is exposed; reduce-scatters share the link with them."""
    job = Job(2, seed=2, slowdown=1.15, groups={"0": "default_pg", "1": "fsdp"})

    def forward_or_backward(*, backward: bool) -> None:
        gathered = job.collective("_allgather_base", 16_777_216, 330_000, group="1")
        scattered = []
        for layer in range(layers):
            ready = gathered
            if layer + 1 < layers:
                gathered = job.collective("_allgather_base", 16_777_216, 330_000, group="1", after=ready)
            job.wait(ready)
            work = 2 if backward else 1
            job.kernel("aten::mm", _GEMM, 190_000 * work, "[[8192, 4096], [4096, 4096]]", grid=264, thread=work)
            ends = job.kernel("aten::layer_norm", _NORM, 50_000 * work, "[[8192, 4096]]", thread=work)
            if backward:
                scattered.append(job.collective("_reduce_scatter_base", 33_554_432, 350_000, stream=24, group="1", after=ends))
        if scattered:
            job.wait(*scattered)

    def body() -> None:
        forward_or_backward(backward=False)
        forward_or_backward(backward=True)
        job.kernel("aten::_fused_adam_", _ADAM, 200_000, "[[67108864]]")

    for number in range(steps):
        job.step(number, body)
    return job


def tp_ep(steps: int = 6, layers: int = 6) -> Job:
    """Tensor and expert parallelism on 2 ranks: all_reduces that compute waits for, all_to_alls on a second stream."""
    job = Job(2, seed=3, slowdown=1.2, groups={"0": "default_pg", "1": "tp", "2": "ep"})

    def body() -> None:
        for _ in range(layers):
            job.kernel("aten::scaled_dot_product_attention", _FLASH, 170_000, "[[2, 16, 4096, 128]]")
            job.wait(job.collective("allreduce", 4_194_304, 90_000, group="1"))
            dispatched = job.collective("all_to_allv", 8_388_608, 150_000, stream=28, group="2")
            job.kernel("aten::mm", _GEMM, 120_000, "[[8192, 4096], [4096, 2048]]", grid=132)
            job.wait(dispatched)
            job.kernel("aten::mm", _GEMM, 240_000, "[[4096, 4096], [4096, 14336]]", grid=264)
            job.wait(job.collective("all_to_allv", 8_388_608, 150_000, stream=28, group="2"))

    for number in range(steps):
        job.step(number, body)
    return job


def straggler(steps: int = 6, layers: int = 4) -> Job:
    """DDP on 4 ranks of which rank 2 computes 30 % slower: the others wait for it in every all_reduce."""
    job = Job(4, seed=4, slowdown=1.1, slower={2: 1.3})

    def body() -> None:
        _forward(job, layers)
        pending = []
        for _ in range(layers):
            ends = job.kernel("aten::mm", _GEMM, 300_000, "[[4096, 8192], [8192, 4096]]", grid=264, thread=2)
            pending.append(job.collective("allreduce", 16_777_216, 250_000, after=ends))
        job.wait(*pending)
        job.kernel("aten::_fused_adam_", _ADAM, 200_000, "[[67108864]]")

    for number in range(steps):
        job.step(number, body)
    return job


STORIES: dict[str, Callable[[], Job]] = {"ddp": ddp, "fsdp": fsdp, "tp_ep": tp_ep, "straggler": straggler}


def truth_of(story: str, job: Job) -> dict[str, Any]:
    """What is true of a job: its story, what was planted, and the times of each rank counted cell by cell, in ns."""
    planted = {"slowdown": job.slowdown, "slower_ranks": {str(rank): factor for rank, factor in job.slower.items()}}
    return {"story": STORIES[story].__doc__, "planted": planted, "overlap": [_counted(rank) for rank in job.ranks]}


def _counted(rank: Rank) -> dict[str, int]:
    edges = sorted({edge for _, start, end in rank.activities for edge in (start, end)})
    total = dict.fromkeys(("compute_ns", "comm_ns", "hidden_ns", "exposed_ns", "idle_ns"), 0)
    running: list[tuple[str, int, int]] = []
    todo = sorted(rank.activities, key=lambda activity: activity[1])
    for left, right in pairwise(edges):
        while todo and todo[0][1] <= left:
            running.append(todo.pop(0))
        running = [activity for activity in running if activity[2] > left]
        kinds = {kind for kind, _, _ in running}
        cell = right - left
        total["compute_ns"] += cell * ("compute" in kinds)
        total["comm_ns"] += cell * ("comm" in kinds)
        total["hidden_ns"] += cell * ({"compute", "comm"} <= kinds)
        total["exposed_ns"] += cell * (kinds == {"comm"})
        total["idle_ns"] += cell * (not kinds)
    return {"rank": rank.number, "span_ns": edges[-1] - edges[0], **total}


def document(job: Job, rank: Rank) -> dict[str, Any]:
    """The Kineto file of one rank."""
    members = list(range(job.world_size))
    groups = [{"pg_name": name, "pg_desc": text, "pg_size": job.world_size, "ranks": members} for name, text in job.groups.items()]
    device = {
        "id": 0, "name": "NVIDIA H100 (simulated)", "numSms": 132, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
        "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 233472, "warpSize": 32,
    }  # fmt: skip
    return {
        "schemaVersion": 1,
        "deviceProperties": [device],
        "distributedInfo": {
            "backend": "nccl",
            "rank": rank.number,
            "world_size": job.world_size,
            "pg_count": len(groups),
            "pg_config": groups,
        },
        "baseTimeNanoseconds": _BASE_NS,
        "traceEvents": sorted(rank.events, key=lambda event: event["ts"]),
    }


def write(folder: Path) -> None:
    """Writes every story below `folder`: NAME/rankN.json.gz and NAME.truth.json, always the same bytes."""
    for story, simulated in STORIES.items():
        job = simulated()
        (folder / story).mkdir(parents=True, exist_ok=True)
        for rank in job.ranks:
            text = json.dumps(document(job, rank), separators=(",", ":"))
            (folder / story / f"rank{rank.number}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        (folder / f"{story}.truth.json").write_text(json.dumps(truth_of(story, job), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
