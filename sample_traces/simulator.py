"""Traces of kernels and collectives that slow each other by known factors: the ground truth for slowdowns.

Each rank has a compute stream that runs its kernels one after another and a communication stream. A kernel progresses
at the rate 1 while it is alone and at 1/slowdown while a collective's kernel runs beside it; a collective moves its
data once all ranks have arrived, at the rate 1 or, while some rank computes, at 1/slowdown of its own. So partial
overlap, collectives that get longer in turn and waits for late ranks come out of the simulation; no formula of the
analysis is used. Durations get noise on top: of each kernel, of each step, outliers, and the timer's tick.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

COMPUTE_STREAM, COMM_STREAM = 7, 20


@dataclass(frozen=True)
class Kernel:
    """A kernel of the program: work is its time alone in µs.

    slowdown: factor beside a collective; tail_slowdown: factor in the second half of its work (None: the same), as in
    kernels whose last wave is hit harder; dims: input dims of its operator (None: not recorded); op: None for no operator.
    """

    name: str
    work: float
    slowdown: float = 1.0
    tail_slowdown: float | None = None
    dims: Sequence[Sequence[int]] | None = ((1024, 1024), (1024, 1024))
    op: str | None = "aten::mm"
    grid: tuple[int, int, int] = (128, 1, 1)


@dataclass(frozen=True)
class Collective:
    """A collective of the program: work is its transfer alone in µs; `after` kernels of the step have ended it is launched.

    slowdown: factor while some rank computes; delay: mean of a random delay of each rank's arrival in µs;
    share: in how many of the steps it takes place.
    """

    work: float
    after: int = 0
    kind: str = "allreduce"
    elements: int = 1 << 20
    slowdown: float = 1.0
    delay: float = 0.0
    share: float = 1.0


@dataclass(frozen=True)
class Noise:
    """Relative standard deviations of each kernel and of each step, degrees of freedom of the tails (0: normal),
    share and factor of outliers, and the timer's tick in ns."""

    kernel: float = 0.0
    step: float = 0.0
    tails: int = 0
    outliers: float = 0.0
    outlier_factor: float = 5.0
    tick_ns: int = 1


@dataclass(frozen=True)
class Program:
    """What every step runs, and how many steps there are; a gap in µs follows each kernel and a longer one each step."""

    kernels: Sequence[Kernel]
    collectives: Sequence[Collective] = ()
    steps: int = 20
    ranks: int = 1
    gap: float = 1.0
    noise: Noise = field(default_factory=Noise)


@dataclass
class _Span:
    rank: int
    step: int
    place: int
    start: float
    end: float
    shared: float = 0.0
    done: float = 0.0


def contended(program: Program, seed: int = 0) -> list[dict[str, Any]]:
    """Kineto documents, one a rank, of the program under contention. The same seed gives the same documents."""
    kernels, collectives = _simulated(program, seed)
    return [_document(program, rank, kernels, collectives) for rank in range(program.ranks)]


def realized(program: Program, seed: int = 0, rank: int = 0) -> dict[str, float]:
    """Of each kernel name the slowdown that came about: shared time over the work done in it, without the first step.

    It differs from the planted factor only for kernels whose rate varies (tail_slowdown).
    """
    kernels, _ = _simulated(program, seed)
    sums: dict[str, list[float]] = {}
    for span in kernels:
        if span.rank == rank and span.step and span.shared >= 0.05 * (span.end - span.start):
            total = sums.setdefault(program.kernels[span.place].name, [0.0, 0.0])
            total[0] += span.shared
            total[1] += span.done
    return {name: shared / done for name, (shared, done) in sums.items()}


def _simulated(program: Program, seed: int) -> tuple[list[_Span], list[_Span]]:
    rng = np.random.default_rng(seed)
    kernels: list[_Span] = []
    collectives: list[_Span] = []
    begin = 1000.0
    present = [rng.permutation(program.steps) < round(c.share * program.steps) for c in program.collectives]
    for step in range(program.steps):
        taking_part = [i for i, steps in enumerate(present) if steps[step]]
        here_kernels, here_collectives = _step(program, step, taking_part, begin, rng)
        kernels += here_kernels
        collectives += here_collectives
        begin = max(span.end for span in here_kernels + here_collectives) + 50 * program.gap
    return kernels, collectives


def _step(
    program: Program, step: int, taking_part: Sequence[int], begin: float, rng: np.random.Generator
) -> tuple[list[_Span], list[_Span]]:
    """The spans of one step: from event to event, all that runs moves on at its present rate."""
    work = _works(program, rng)
    moving = {i: program.collectives[i].work * _factor(program.noise, rng) for i in taking_part}
    delay = {(r, i): rng.exponential(program.collectives[i].delay) for i in taking_part for r in range(program.ranks)}
    kernel_at, left, start = [0] * program.ranks, work[:, 0].copy(), np.full(program.ranks, begin)
    ready: dict[tuple[int, int], float] = {}
    shared, done = np.zeros(program.ranks), np.zeros(program.ranks)
    spans: list[_Span] = []
    collectives: list[_Span] = []
    now, queue, free = begin, list(taking_part), begin
    while queue or min(kernel_at) < len(program.kernels):
        for r in range(program.ranks):
            for i in queue:
                if (r, i) not in ready and kernel_at[r] >= program.collectives[i].after:
                    ready[r, i] = now + delay[r, i]
        head = queue[0] if queue else None
        arrival = [max(ready.get((r, head), np.inf), free) if head is not None else np.inf for r in range(program.ranks)]
        beside = [at <= now for at in arrival]
        computing = [kernel_at[r] < len(program.kernels) and start[r] <= now for r in range(program.ranks)]
        rates = [1 / _slowdown(program, kernel_at[r], left[r], work[r]) if beside[r] and computing[r] else 1.0 for r in range(program.ranks)]
        times = [now + _until_half(program, kernel_at[r], left[r], work[r]) / rates[r] for r in range(program.ranks) if computing[r]]
        times += [float(s) for s in start if s > now] + [at for at in arrival if now < at < np.inf]
        rate = 1 / program.collectives[head].slowdown if head is not None and any(computing) else 1.0
        if head is not None and all(beside):
            times.append(now + moving[head] / rate)
        soon = min(times)
        if head is not None and all(beside):
            moving[head] -= (soon - now) * rate
        for r in range(program.ranks):
            if computing[r]:
                left[r] -= (soon - now) * rates[r]
                if beside[r]:
                    shared[r] += soon - now
                    done[r] += (soon - now) * rates[r]
                if left[r] < 1e-9:
                    spans.append(_Span(r, step, kernel_at[r], float(start[r]), soon, float(shared[r]), float(done[r])))
                    shared[r] = done[r] = 0.0
                    kernel_at[r] += 1
                    start[r] = soon + program.gap
                    left[r] = work[r, min(kernel_at[r], work.shape[1] - 1)]
        now = soon
        if head is not None and all(beside) and moving[head] < 1e-9:
            collectives += [_Span(r, step, head, arrival[r], now) for r in range(program.ranks)]
            queue.remove(head)
            free = now + program.gap
    return spans, collectives


def _works(program: Program, rng: np.random.Generator) -> Any:
    """Work of each kernel on each rank in this step, µs, with its noise."""
    noise = program.noise
    of_step = 1 + noise.step * rng.standard_normal()
    return np.array(
        [[max(k.work * of_step * _factor(noise, rng), 0.05 * k.work) for k in program.kernels] for _ in range(program.ranks)]
    )


def _factor(noise: Noise, rng: np.random.Generator) -> float:
    spread = rng.standard_t(noise.tails) / np.sqrt(noise.tails / (noise.tails - 2)) if noise.tails else rng.standard_normal()
    outlier = noise.outlier_factor if rng.random() < noise.outliers else 1.0
    return float(max(1 + noise.kernel * spread, 0.05) * outlier)


def _in_second_half(left: float, work: float) -> bool:
    return left <= work / 2 + 1e-9


def _slowdown(program: Program, at: int, left: float, work: Any) -> float:
    kernel = program.kernels[at]
    late = kernel.tail_slowdown is not None and _in_second_half(left, work[at])
    return float(kernel.tail_slowdown) if late and kernel.tail_slowdown is not None else kernel.slowdown


def _until_half(program: Program, at: int, left: float, work: Any) -> float:
    """Work until the kernel's factor changes or it ends."""
    changes = program.kernels[at].tail_slowdown is not None and not _in_second_half(left, work[at])
    return float(left - work[at] / 2 if changes else left)


def _document(program: Program, rank: int, kernels: Sequence[_Span], collectives: Sequence[_Span]) -> dict[str, Any]:
    """The Kineto document of one rank: steps, operators, launches (all at the start of the step) and device activities."""
    events: list[dict[str, Any]] = []
    tick = program.noise.tick_ns
    for step in range(program.steps):
        mine = [span for span in (*kernels, *collectives) if span.rank == rank and span.step == step]
        begin = min(span.start for span in mine) - 40
        for turn, span in enumerate(sorted((s for s in kernels if s.rank == rank and s.step == step), key=lambda s: s.start)):
            events += _launched(program.kernels[span.place], span, begin + 0.01 * turn, len(events) + 1, tick)
        for span in (s for s in collectives if s.rank == rank and s.step == step):
            events += _communicated(program, span, begin + 25, len(events) + 1, tick)
        last = begin + 30
        events.append(_event("user_annotation", f"ProfilerStep#{step + 10}", begin - 1, last, tick, 1, {}))
    head = {"backend": "nccl", "rank": rank, "world_size": program.ranks}
    return {"schemaVersion": 1, "distributedInfo": head, "deviceProperties": [_DEVICE], "traceEvents": events}


_DEVICE = {
    "id": 0,
    "name": "simulated",
    "numSms": 132,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 233472,
    "warpSize": 32,
}


def _launched(kernel: Kernel, span: _Span, at: float, correlation: int, tick: int) -> list[dict[str, Any]]:
    launch = _event("cuda_runtime", "cudaLaunchKernel", at + 0.002, at + 0.008, 1, 1, {"correlation": correlation})
    arguments: dict[str, Any] = {"correlation": correlation, "stream": COMPUTE_STREAM, "device": 0, "grid": list(kernel.grid)}
    arguments |= {"block": [256, 1, 1], "registers per thread": 64, "shared memory": 0}
    device = _event("kernel", kernel.name, span.start, span.end, tick, COMPUTE_STREAM, arguments)
    shapes = {} if kernel.dims is None else {"Input Dims": [list(d) for d in kernel.dims], "Input type": ["float"] * len(kernel.dims)}
    op = [] if kernel.op is None else [_event("cpu_op", kernel.op, at, at + 0.01, 1, 1, shapes)]
    return [*op, launch, device]


def _communicated(program: Program, span: _Span, at: float, correlation: int, tick: int) -> list[dict[str, Any]]:
    collective = program.collectives[span.place]
    at += 0.01 * span.place
    arguments: Mapping[str, Any] = {
        "correlation": correlation,
        "stream": COMM_STREAM,
        "device": 0,
        "grid": [16, 1, 1],
        "block": [512, 1, 1],
        "registers per thread": 96,
        "shared memory": 0,
        "Collective name": collective.kind,
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Group size": max(program.ranks, 2),
        "dtype": "Float",
        "In msg nelems": collective.elements,
        "Out msg nelems": collective.elements,
        "Seq": span.step * len(program.collectives) + span.place,
    }
    launch = _event("cuda_runtime", "cudaLaunchKernel", at + 0.002, at + 0.008, 1, 1, {"correlation": correlation})
    return [launch, _event("kernel", f"ncclDevKernel_{collective.kind}_RING_LL", span.start, span.end, tick, COMM_STREAM, arguments)]


def _event(category: str, name: str, start: float, end: float, tick_ns: int, thread: int, args: Mapping[str, Any]) -> dict[str, Any]:
    """A complete event; its times in µs are rounded to the tick."""
    first, last = (round(time * 1000 / tick_ns) * tick_ns for time in (start, end))
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 0,
        "tid": thread,
        "ts": first / 1000,
        "dur": max(last - first, 0) / 1000,
        "args": dict(args),
    }
