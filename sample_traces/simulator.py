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

_LITTLE = 1e-9


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


class _Rank:
    """Where one rank stands in its step: the kernel at work, what is left of it, and when it reaches the next collective."""

    def __init__(self, number: int, kernels: Sequence[Kernel], works: Any, begin: float) -> None:
        self.number, self.kernels, self.works = number, kernels, works
        self.at, self.left, self.start = 0, float(works[0]), begin
        self.arrival = np.inf
        self.shared = self.done = 0.0

    @property
    def finished(self) -> bool:
        return self.at == len(self.kernels)

    def computing(self, now: float) -> bool:
        return not self.finished and self.start <= now

    def rate(self, now: float) -> float:
        """Progress per time: 1 alone, 1/slowdown once the collective's kernel runs beside it."""
        if self.arrival > now:
            return 1.0
        kernel = self.kernels[self.at]
        late = kernel.tail_slowdown is not None and self.left <= self.works[self.at] / 2 + _LITTLE
        return 1 / (kernel.tail_slowdown if late and kernel.tail_slowdown is not None else kernel.slowdown)

    def next_change(self, now: float) -> list[float]:
        """When this rank's kernel starts, ends or changes its rate, or its collective's kernel starts."""
        times = [self.arrival] if now < self.arrival < np.inf else []
        if not self.finished and self.start > now:
            times.append(self.start)
        if self.computing(now):
            half = self.left - self.works[self.at] / 2
            until = half if self.kernels[self.at].tail_slowdown is not None and half > _LITTLE else self.left
            times.append(now + until / self.rate(now))
        return times

    def advanced(self, now: float, soon: float, step: int, gap: float) -> list[_Span]:
        """Moves on to `soon`; the kernel's span when it has ended."""
        if not self.computing(now):
            return []
        progress = (soon - now) * self.rate(now)
        if self.arrival <= now:
            self.shared, self.done = self.shared + soon - now, self.done + progress
        self.left -= progress
        if self.left > _LITTLE:
            return []
        span = _Span(self.number, step, self.at, self.start, soon, self.shared, self.done)
        self.at, self.start, self.shared, self.done = self.at + 1, soon + gap, 0.0, 0.0
        self.left = 0.0 if self.finished else float(self.works[self.at])
        return [span]


def _step(
    program: Program, step: int, taking_part: Sequence[int], begin: float, rng: np.random.Generator
) -> tuple[list[_Span], list[_Span]]:
    """The spans of one step: from event to event, all that runs moves on at its present rate."""
    works = _works(program, rng)
    ranks = [_Rank(r, program.kernels, works[r], begin) for r in range(program.ranks)]
    moving = [program.collectives[i].work * _factor(program.noise, rng) for i in taking_part]
    delays = [[rng.exponential(program.collectives[i].delay) for _ in ranks] for i in taking_part]
    kernels: list[_Span] = []
    collectives: list[_Span] = []
    now, turn, free = begin, 0, begin
    while turn < len(taking_part) or not all(rank.finished for rank in ranks):
        head = program.collectives[taking_part[turn]] if turn < len(taking_part) else None
        for rank in ranks if head is not None else []:
            if rank.arrival == np.inf and head is not None and rank.at >= head.after:
                rank.arrival = max(now + delays[turn][rank.number], free)
        moves = head is not None and all(rank.arrival <= now for rank in ranks)
        speed = 1 / head.slowdown if head is not None and any(rank.computing(now) for rank in ranks) else 1.0
        times = [time for rank in ranks for time in rank.next_change(now)]
        soon = min([*times, now + moving[turn] / speed] if moves else times)
        for rank in ranks:
            kernels += rank.advanced(now, soon, step, program.gap)
        if moves:
            moving[turn] -= (soon - now) * speed
            if moving[turn] < _LITTLE:
                collectives += [_Span(rank.number, step, taking_part[turn], rank.arrival, soon) for rank in ranks]
                turn, free = turn + 1, soon + program.gap
                for rank in ranks:
                    rank.arrival = np.inf
        now = soon
    return kernels, collectives


def _works(program: Program, rng: np.random.Generator) -> Any:
    """Work of each kernel on each rank in this step, µs, with its noise."""
    noise = program.noise
    of_step = 1 + noise.step * rng.standard_normal()
    return np.array([[max(k.work * of_step * _factor(noise, rng), 0.05 * k.work) for k in program.kernels] for _ in range(program.ranks)])


def _factor(noise: Noise, rng: np.random.Generator) -> float:
    spread = rng.standard_t(noise.tails) / np.sqrt(noise.tails / (noise.tails - 2)) if noise.tails else rng.standard_normal()
    outlier = noise.outlier_factor if rng.random() < noise.outliers else 1.0
    return float(max(1 + noise.kernel * spread, 0.05) * outlier)


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
